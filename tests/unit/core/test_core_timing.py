"""Medians with their interval, the supervisor's slope, and two clocks."""

from __future__ import annotations

import math
import random

import pytest

from kopt.timing import Timing, clock_is_slow, median_ci, slope_us


@pytest.mark.parametrize(
    ("count", "interval"),
    [(1, (1, 1)), (5, (1, 5)), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (12, (3, 10)), (20, (6, 15))],
)
def test_the_interval_has_the_ranks_of_the_binomial_table(count, interval) -> None:
    """Ranks at 95 % by the published tables of order-statistic intervals of the median."""
    samples = [float(value) for value in range(1, count + 1)]
    assert median_ci(samples[::-1]) == interval


def test_thousands_of_samples_give_the_normal_ranks() -> None:
    low, high = median_ci([float(value) for value in range(1, 10_001)])
    assert low == pytest.approx(5_000 - 0.98 * 100, abs=2)
    assert high == pytest.approx(5_001 + 0.98 * 100, abs=2)


def test_the_median_is_covered_as_often_as_the_level_says() -> None:
    rng = random.Random(5)
    inside = 0
    for _ in range(2_000):
        low, high = median_ci([rng.expovariate(1.0) for _ in range(15)])
        inside += low <= math.log(2.0) <= high
    assert 0.95 <= inside / 2_000 <= 0.99


@pytest.mark.parametrize("samples", [[], [1.0, math.nan], [math.inf]])
def test_no_samples_or_one_that_is_not_finite_has_no_interval(samples) -> None:
    with pytest.raises(ValueError, match="finite samples"):
        median_ci(samples)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, math.nan])
def test_a_level_must_lie_between_0_and_1(level) -> None:
    with pytest.raises(ValueError, match="level"):
        median_ci([1.0], level=level)


def test_the_slope_leaves_out_what_a_command_costs() -> None:
    # 300 us of overhead, 20 us a call
    assert slope_us(400.0, calls_few=5, wall_many_us=1_300.0, calls_many=50) == 20.0


@pytest.mark.parametrize(("few", "many"), [(5, 5), (6, 5), (-1, 5)])
def test_a_slope_needs_more_calls_the_second_time(few, many) -> None:
    with pytest.raises(ValueError, match="calls_few"):
        slope_us(1.0, calls_few=few, wall_many_us=2.0, calls_many=many)


@pytest.mark.parametrize(
    ("child_us", "supervisor_us", "slow"),
    [
        (100.0, 100.0, False),
        (91.0, 100.0, False),
        (89.0, 100.0, True),
        (300.0, 100.0, False),  # it accuses itself
        (1.6, 2.0, False),  # within the clocks' resolution
        (1.4, 2.0, True),
        (0.0, 2.0, True),
        (-5.0, -5.2, False),  # noise, seen by both
        (-9.0, -5.0, True),
        (math.nan, 2.0, True),
        (1.0, math.nan, True),
        (math.inf, 2.0, True),
        (1.0, math.inf, True),
    ],
)
def test_a_clock_is_slow_beyond_the_tolerance_and_the_resolution(
    child_us, supervisor_us, slow
) -> None:
    assert clock_is_slow(child_us, supervisor_us=supervisor_us, tolerance=0.10) is slow


def test_the_share_of_the_speed_of_light_is_unknown_without_it() -> None:
    known = {
        "time_us": 50.0,
        "time_ci_us": (49.0, 51.0),
        "baseline": "eager",
        "baseline_us": 100.0,
        "speedup": 2.0,
        "speedup_ci": (1.9, 2.1),
        "eager_us": 100.0,
        "compile_us": None,
    }
    assert Timing(**known).sol_share is None
    assert Timing(**known, sol_us=10.0).sol_share == 0.2
