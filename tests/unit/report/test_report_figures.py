"""Figures of the report, against values worked out by hand."""

from types import SimpleNamespace

import pytest

from kopt.analysis.proportion import Share
from kopt.analysis.study import Asked, study
from kopt.evidence import Roofline
from kopt.report import wording
from kopt.report.baselines import shown_baselines
from kopt.report.charts import category_axis, dodged, speedup_axis
from kopt.report.reading import Judged
from kopt.report.roof import roof_of
from kopt.report.throughput import PAUSE_S, _active
from kopt.testing.sample_trials import sample_trial


def test_a_memory_bound_candidate_stands_below_the_slope():
    # 1e8 bytes in 25 us are 4e12 a second; times the ridge of 20, 8e13 FLOP a second.
    # 1e9 FLOP in 50 us are 2e13, half of what the slope allows at 10 FLOP a byte.
    roof = roof_of(Roofline(flops=1e9, bytes=1e8, ridge=20.0, sol_us=25.0), time_us=50.0)
    assert roof is not None
    assert roof.peak_bytes == pytest.approx(4e12)
    assert roof.peak_flops == pytest.approx(8e13)
    assert roof.reached_flops == pytest.approx(2e13)
    assert roof.reached_flops == pytest.approx(0.5 * roof.intensity * roof.peak_bytes)
    assert roof.sol_share == 0.5
    assert roof.note == ""


def test_a_compute_bound_candidate_stands_below_the_flat_roof():
    # 1e9 FLOP in 25 us are 4e13 a second; by the ridge of 20, memory moves 2e12 bytes a second.
    roof = roof_of(Roofline(flops=1e9, bytes=1e7, ridge=20.0, sol_us=25.0), time_us=100.0)
    assert roof is not None
    assert roof.peak_flops == pytest.approx(4e13)
    assert roof.peak_bytes == pytest.approx(2e12)
    assert roof.sol_share == 0.25


def test_a_candidate_above_the_roof_is_remarked_upon():
    roof = roof_of(Roofline(flops=1e9, bytes=1e8, ridge=20.0, sol_us=25.0), time_us=20.0)
    assert roof is not None
    assert "less work than the reference" in roof.note


@pytest.mark.parametrize(
    ("roofline", "time_us"),
    [
        (None, 50.0),
        (Roofline(flops=1e9, bytes=1e8, ridge=20.0, sol_us=25.0), None),
        (Roofline(flops=1e9, bytes=1e8, ridge=20.0), 50.0),
        (Roofline(flops=0.0, bytes=1e8, ridge=20.0, sol_us=25.0), 50.0),
    ],
)
def test_what_was_not_recorded_has_no_picture(roofline, time_us):
    assert roof_of(roofline, time_us=time_us) is None


def test_pauses_do_not_count_as_time():
    # 10 s, a pause, then 20 s.
    pause = PAUSE_S + 1.0
    judged = [Judged(int(at * 1e9), cached=False) for at in (10.0, 10.0 + pause, 30.0 + pause)]
    assert _active(judged, begun_ns=0) == ([10.0, 10.0, 30.0], 30.0)


def test_arms_stand_apart_and_around_the_middle():
    assert dodged(2, place=0, arms=1) == [0.0, 1.0]
    first, second = dodged(1, place=0, arms=2), dodged(1, place=1, arms=2)
    assert first[0] == -second[0] < 0.0
    assert category_axis("p", ["a", "b"])["ticktext"] == ["a", "b"]


def test_an_axis_of_speed_ups_always_has_parity():
    assert 1.0 in speedup_axis("x", [40.0, 60.0])["tickvals"]
    assert 1.0 in speedup_axis("x", [])["tickvals"]
    assert 0.5 in speedup_axis("x", [0.4, 1.1])["tickvals"]


def test_figures_have_their_units():
    assert wording.times(1.256) == "1.26×"
    assert wording.times(123.4) == "123×"
    assert wording.times(None) == "–"
    assert wording.between((1.05, 1.5)) == "1.05 to 1.50"
    assert wording.between((None, None)) == ""
    assert wording.microseconds(12.34) == "12.3 µs"
    assert wording.microseconds(45_678.0) == "45.68 ms"
    assert wording.seconds(200.0) == "3.3 min"
    assert wording.percent(0.123) == "12.3 %"
    assert wording.share(Share(share=0.5, low=0.2, high=0.8, num=4)) == "50 % (20 to 80)"
    assert wording.chance(0.00001) == "<0.0001"
    assert wording.chance(None) == "–"
    assert wording.number(1234.0) == "1,234"
    assert wording.usd(3.0) == "$3.00"
    assert wording.counted(2, "search", "searches") == "2 searches"


def test_arms_that_have_nothing_in_common_have_no_ratio_to_draw():
    from kopt.report.count_charts import comparison_chart

    trials = [sample_trial("a", 2.0, arm="one"), sample_trial("b", 3.0, arm="two")]
    (stratum,) = study(trials, settings={}, asked=Asked()).strata
    assert len(stratum.comparisons) == 1
    assert comparison_chart(stratum.comparisons, key="k") is None


def test_over_given_kernels_is_a_column_where_problems_come_with_any() -> None:
    plain, with_kernel = ({"speedup_given": value} for value in (None, 1.25))
    rows = [SimpleNamespace(row=plain), SimpleNamespace(row=with_kernel)]
    assert shown_baselines(rows) == ["eager", "compile", "given"]  # type: ignore[arg-type]
    assert shown_baselines(rows[:1]) == ["eager", "compile"]  # type: ignore[arg-type]
