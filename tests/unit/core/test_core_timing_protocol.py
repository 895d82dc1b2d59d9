"""How many calls a protocol makes, and what it makes of their times."""

from __future__ import annotations

import math

import pytest

from kopt.timing_protocol import CallPlan, call_plan, figure_ci_us, figure_us, figures_speedup


def test_do_bench_fills_its_times_with_calls_and_the_clearing_between() -> None:
    # 430 + 70 us: 25 ms hold 50 of them, 100 ms hold 200.
    plan = call_plan("do_bench", call_us=430.0, clear_us=70.0)
    assert plan == CallPlan(warm_up=50, discarded=0, counted=200)


def test_do_bench_calls_what_takes_longer_than_its_times_once() -> None:
    plan = call_plan("do_bench", call_us=300_000.0)
    assert plan == CallPlan(warm_up=1, discarded=0, counted=1)


@pytest.mark.parametrize("call_us", [1.0, 1e6])
def test_kernelbench_makes_a_hundred_trials_however_long_they_take(call_us) -> None:
    plan = call_plan("kernelbench", call_us=call_us)
    assert plan == CallPlan(warm_up=3, discarded=1, counted=100)


def test_a_race_has_no_plan() -> None:
    with pytest.raises(ValueError, match="abba has no plan"):
        call_plan("abba", call_us=1.0)


@pytest.mark.parametrize("call_us", [0.0, -1.0, math.nan, math.inf])
def test_no_plan_is_made_for_a_time_that_is_none(call_us) -> None:
    with pytest.raises(ValueError, match="above 0"):
        call_plan("do_bench", call_us=call_us)


def test_do_bench_reports_the_median_and_kernelbench_the_mean() -> None:
    times_us = [1.0, 2.0, 9.0]
    assert figure_us(times_us, protocol="do_bench") == 2.0
    assert figure_us(times_us, protocol="kernelbench") == 4.0
    with pytest.raises(ValueError, match="at least one time"):
        figure_us([], protocol="do_bench")


def test_the_interval_of_a_mean_is_students() -> None:
    # Mean 2, deviation 1, three values: 4.3027 (t of 2 degrees, 97.5 %) / sqrt(3) = 2.4841.
    low, high = figure_ci_us([1.0, 2.0, 3.0], protocol="kernelbench")
    assert (low, high) == (pytest.approx(2.0 - 2.4841, abs=1e-4), pytest.approx(4.4841, abs=1e-4))
    assert figure_ci_us([5.0], protocol="kernelbench") == (5.0, 5.0)


def test_the_interval_of_a_median_is_by_order_statistics() -> None:
    assert figure_ci_us([3.0, 1.0, 2.0], protocol="do_bench") == (1.0, 3.0)


def test_a_speedup_lies_between_the_worst_and_the_best_of_both_intervals() -> None:
    speedup, (low, high) = figures_speedup(
        [10.0, 12.0, 11.0], candidate_us=[5.0, 5.5, 6.0], protocol="do_bench"
    )
    assert speedup == 2.0
    assert (low, high) == (pytest.approx(10.0 / 6.0), pytest.approx(12.0 / 5.0))


def test_means_of_wild_times_give_a_wide_speedup_and_no_negative_one() -> None:
    speedup, (low, high) = figures_speedup(
        [1.0, 100.0], candidate_us=[1.0, 100.0], protocol="kernelbench"
    )
    assert speedup == 1.0
    assert low == 0.0
    assert math.isfinite(high)
