"""What is read of a server's page of figures."""

import pytest

from kopt.actors.programmers.vllm.figures import Figures, read_figures
from kopt.actors.programmers.vllm.serving import cache_line

PAGE = """\
# HELP vllm:prefix_cache_queries_total Tokens looked up.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 100.0
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 60.0
# TYPE vllm:prefix_cache_queries_created gauge
vllm:prefix_cache_queries_created{engine="0",model_name="m"} 1.796e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 40.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
# TYPE process_open_fds gauge
process_open_fds 12.0
"""


def test_counters_of_engines_are_added_and_others_left_out() -> None:
    figures = read_figures(PAGE)
    assert figures == Figures(prefix_queries=160, prefix_hits=40, peak_running=3, peak_kv_cache=0.5)
    assert figures.hit_rate == 0.25


def test_servers_are_added_and_peaks_are_not() -> None:
    one = Figures(prefix_queries=100, prefix_hits=50, peak_waiting=4, peak_kv_cache=0.2)
    other = Figures(prefix_queries=300, prefix_hits=50, peak_waiting=1, peak_kv_cache=0.7)
    both = one.plus(other)
    assert both == Figures(prefix_queries=400, prefix_hits=100, peak_waiting=4, peak_kv_cache=0.7)
    assert both.hit_rate == 0.25


def test_a_later_look_at_a_server_keeps_the_peaks_of_an_earlier_one() -> None:
    earlier = Figures(prompt_tokens=10, peak_running=8)
    later = Figures(prompt_tokens=30, peak_running=0)
    assert later.after(earlier) == Figures(prompt_tokens=30, peak_running=8)


def test_a_rate_of_nothing_is_unknown_and_not_zero() -> None:
    assert Figures().hit_rate is None
    assert Figures().to_json()["prefix_hit_rate"] is None
    assert cache_line(Figures()).startswith("no prompt was looked up")


def test_what_no_look_saw_is_not_said_to_have_been_nothing() -> None:
    idle = Figures(prefix_queries=100, prefix_hits=50, generation_tokens=20)
    assert cache_line(idle) == (
        "prefix cache hit rate 50.0% (50 of 100 prompt tokens); 20 tokens written; 0 preemptions"
    )
    busy = Figures(peak_running=3, peak_kv_cache=0.5)
    assert (
        "; at most 3 under way in a server, as seen every few seconds; at most 50% of its KV "
        in (cache_line(busy))
    )
    queued = Figures(peak_running=3, peak_waiting=2)
    assert "; at most 3 under way and 2 waiting in a server, as seen" in cache_line(queued)


def test_a_page_that_is_none_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_figures('vllm:prefix_cache_hits_total{engine="0} x\n')
