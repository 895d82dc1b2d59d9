"""Two processes of the same code differ by their launches: the interval allows for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kopt.launch_noise import APART_US, widened
from kopt.timing import Timing

TIMING = Timing(
    speedup=1.05,
    speedup_ci=(1.03, 1.07),
    time_us=100.0,
    time_ci_us=(99.0, 101.0),
    baseline="eager",
    baseline_us=105.0,
    eager_us=105.0,
    compile_us=None,
)


def test_a_chain_of_small_kernels_is_not_called_faster_by_what_processes_differ() -> None:
    # Found on an H200: equal candidates of 130 launches, 265 us a call, up to 10 % apart.
    chain = replace(TIMING, time_us=240.0, baseline_us=265.0, speedup_ci=(1.08, 1.12))
    assert widened(chain, mine=130, theirs=130).speedup_ci[0] < 1.0


def test_a_call_of_one_launch_keeps_what_it_gained() -> None:
    low, high = widened(TIMING, mine=1, theirs=1).speedup_ci
    assert 1.0 < low < 1.03 < 1.07 < high
    assert low == pytest.approx(1.03 / (1.0 + APART_US / 100.0) / (1.0 + APART_US / 105.0))


def test_nothing_else_of_a_timing_changes() -> None:
    assert replace(widened(TIMING, mine=9, theirs=9), speedup_ci=TIMING.speedup_ci) == TIMING
    assert widened(TIMING, mine=0, theirs=0) == TIMING
