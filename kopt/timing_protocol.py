"""Timing protocols: how many calls each makes, and what it makes of their times.

Pure: numbers in, numbers out. `abba` is ours (kopt.racing): blocks of candidate and baseline in
interleaved pairs, until the outcome is clear. The other two take candidate and baseline each by
itself, as published figures were taken, and exist to be compared with them:

* `do_bench`: Triton's `triton.testing.do_bench` with its usual 25 ms of warm-up and 100 ms of
  repetitions, the L2 cleared before each; the median, as KernelOPT reports.
* `kernelbench`: KernelBench's `cuda_event` timing as its evaluation runs it: 3 calls of warm-up,
  one trial that is thrown away, 100 trials, the device waited for and the L2 cleared before each;
  the mean.

Both make fresh content for each call, which the originals do not; it is no part of the time.
Source: DESIGN §5.4; profiling notes §D.1; KernelBench `src/kernelbench/timing.py`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kopt.timing import TimingProtocol, median_ci

DO_BENCH_WARM_UP_US = 25_000.0
DO_BENCH_REPEAT_US = 100_000.0
ESTIMATE_CALLS = 5
"""From which `do_bench` reckons how many calls fill its times."""
KERNELBENCH_WARM_UP, KERNELBENCH_DISCARDED, KERNELBENCH_TRIALS = 3, 1, 100
PART_LEVEL = 0.975
"""Of the interval of each of two medians, for 95 % of their ratio (Bonferroni)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """What a protocol makes of one module."""

    warm_up: int
    """Calls before anything counts."""
    discarded: int
    """Calls that are made as those that count, and thrown away."""
    counted: int


def call_plan(protocol: TimingProtocol, *, call_us: float, clear_us: float = 0.0) -> CallPlan:
    """Return how many calls a protocol makes.

    Args:
        protocol: one that plans its calls.
        call_us: of one call, estimated.
        clear_us: that clearing the caches takes, which Triton's estimate includes.

    Raises:
        ValueError: the protocol is `abba`, which stops as it goes; or a time is not above 0.
    """
    if protocol == "abba":
        raise ValueError("abba has no plan: a race stops when its outcome is clear")
    if protocol == "kernelbench":
        return CallPlan(
            warm_up=KERNELBENCH_WARM_UP,
            discarded=KERNELBENCH_DISCARDED,
            counted=KERNELBENCH_TRIALS,
        )
    estimate_us = call_us + clear_us
    if not (estimate_us > 0.0 and math.isfinite(estimate_us)):
        raise ValueError(f"a call must take a time above 0, got {estimate_us:g} us")
    return CallPlan(
        warm_up=max(1, int(DO_BENCH_WARM_UP_US / estimate_us)),
        discarded=0,
        counted=max(1, int(DO_BENCH_REPEAT_US / estimate_us)),
    )


def figure_us(calls_us: Sequence[float], *, protocol: TimingProtocol) -> float:
    """Return the figure that a protocol reports: `kernelbench` the mean, others the median.

    Raises:
        ValueError: there are no times.
    """
    if not calls_us:
        raise ValueError("a figure needs at least one time")
    return statistics.fmean(calls_us) if protocol == "kernelbench" else statistics.median(calls_us)


def figure_ci_us(
    calls_us: Sequence[float], *, protocol: TimingProtocol, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of that figure: of the mean by t, of the median by order statistics.

    It knows of the noise between calls, and not of what changes from one measurement to the next.

    Raises:
        ValueError: there are no times, or one is not finite.
    """
    if protocol != "kernelbench":
        return median_ci(calls_us, level=level)
    mean = figure_us(calls_us, protocol=protocol)
    if len(calls_us) < 2:
        return mean, mean
    from scipy.special import stdtrit  # half a second, which few protocols need

    error = statistics.stdev(calls_us, mean) / math.sqrt(len(calls_us))
    half = float(stdtrit(len(calls_us) - 1, 0.5 + level / 2.0)) * error
    return mean - half, mean + half


def figures_speedup(
    baseline_us: Sequence[float], *, candidate_us: Sequence[float], protocol: TimingProtocol
) -> tuple[float, tuple[float, float]]:
    """Return (speed-up, 95 % interval) of two measurements, each by itself.

    The ratio of the figures. Its interval is that of the worst and the best of the two figures'
    own, each of 97.5 %: no narrower than it need be.

    Raises:
        ValueError: one of them has no times.
    """
    mine, theirs = (figure_us(each, protocol=protocol) for each in (candidate_us, baseline_us))
    (mine_low, mine_high), (low, high) = (
        figure_ci_us(each, protocol=protocol, level=PART_LEVEL)
        for each in (candidate_us, baseline_us)
    )
    floor = min(candidate_us)  # a mean's interval may reach below 0
    return theirs / mine, (max(low, 0.0) / mine_high, high / max(mine_low, floor))
