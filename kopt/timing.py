"""Timing arithmetic: samples to medians, paired ratios to a speed-up with its interval.

Pure: numbers in, numbers out. Who measures them, and how, is kopt.actors.
Source: shared protocol of DESIGN §5.4; KernelOPT's 1.03 is gate 4's threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Baseline = Literal["eager", "compile", "max_autotune", "given"]
GIVEN: Literal["given"] = "given"
"""The kernel that a problem comes with (`Problem.given`)."""

TimingProtocol = Literal["abba", "do_bench", "kernelbench"]
"""How times were taken (kopt.timing_protocol): times of two protocols do not compare."""

MAX_SAMPLES = 200
"""Times of one side that a timing keeps: more than a race has pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What timing a correct candidate found, in microseconds of one call.

    Cold where the device allows it (CUDA: L2 flushed before each call). Where this says median,
    `kernelbench` has the mean.
    """

    time_us: float
    """Median of the candidate."""
    time_ci_us: tuple[float, float]
    """95 % interval of that median."""
    baseline: Baseline
    """What the speed-up is against: the faster of eager and compile unless a setting names one."""
    baseline_us: float
    """Median of the baseline, interleaved with the candidate."""
    speedup: float
    """baseline ÷ candidate, from interleaved pairs (not from the two medians) where there are
    pairs."""
    speedup_ci: tuple[float, float]
    """Interval of the speed-up: above 1 in less than one of 300 races of equal kernels
    (kopt.racing); without pairs a 95 % interval."""
    eager_us: float
    """Median of the reference in eager mode."""
    compile_us: float | None
    """Median under torch.compile's defaults; None where it was off or failed."""
    max_autotune_us: float | None = None
    """Median under torch.compile(mode="max-autotune-no-cudagraphs"); None where it was off."""
    given_us: float | None = None
    """Median of the kernel that the problem comes with; None where there is none, or it failed."""
    sol_us: float | None = None
    """Speed of light of the problem on this device; None where unknown."""
    num_pairs: int = 0
    """Interleaved pairs that the speed-up rests on; 0 under a protocol that makes none."""
    protocol: TimingProtocol = "abba"
    """How every time here was taken."""
    samples_us: tuple[float, ...] = ()
    """What `time_us` was found from, in the order timed: of each pair the candidate's time; without
    pairs its first calls (`MAX_SAMPLES`). None where they were not kept."""
    baseline_samples_us: tuple[float, ...] = ()
    """The baseline's, of the same pairs."""

    @property
    def sol_share(self) -> float | None:
        """Speed of light ÷ time, 1 is the roof; None where unknown."""
        return None if self.sol_us is None else self.sol_us / self.time_us


def kept_samples(times_us: Sequence[float]) -> tuple[float, ...]:
    """Return the times that are kept of a timing: the first MAX_SAMPLES, to five digits."""
    return tuple(float(f"{each:.5g}") for each in times_us[:MAX_SAMPLES])


def median_ci(samples_us: Sequence[float], *, level: float = 0.95) -> tuple[float, float]:
    """Return the distribution-free interval of the median, in the samples' unit.

    The order statistics x(k) and x(n+1-k), k the largest rank whose binomial coverage is still
    at least `level`; the least and the greatest sample where n is too small for that (n < 6 at
    95 %).

    Args:
        samples_us: at least one sample, in any order, each finite.
        level: wanted coverage, between 0 and 1.

    Raises:
        ValueError: no samples, or one that is not finite, or `level` is out of range.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level:g}")
    if not samples_us or not all(math.isfinite(sample) for sample in samples_us):
        raise ValueError(f"need finite samples, at least one; got {len(samples_us)}")
    ordered = sorted(samples_us)
    rank = _outer_rank(len(ordered), tail=(1.0 - level) / 2.0)
    return ordered[rank - 1], ordered[-rank]


def _outer_rank(num_samples: int, *, tail: float) -> int:
    """Return the largest k with P(Binomial(n, 1/2) < k) ≤ tail, at least 1."""
    # By logarithms: a timing of many short calls has thousands of samples, and comb(n, k)
    # leaves the floats at n = 1030.
    rank, below = 0, 0.0
    while rank < num_samples // 2:
        log_ways = (
            math.lgamma(num_samples + 1)
            - math.lgamma(rank + 1)
            - math.lgamma(num_samples - rank + 1)
        )
        below += math.exp(log_ways - num_samples * math.log(2.0))
        if below > tail:
            break
        rank += 1
    return max(rank, 1)


def slope_us(wall_few_us: float, *, calls_few: int, wall_many_us: float, calls_many: int) -> float:
    """Return the time of one call by the supervisor's clock: the slope of wall time over calls.

    slope = (wall_many - wall_few) / (calls_many - calls_few), which cancels what a command costs
    whatever its number of calls. May be zero or negative where noise exceeds the work.

    Raises:
        ValueError: calls_many is not above calls_few, or calls_few is below 0.
    """
    if not 0 <= calls_few < calls_many:
        raise ValueError(f"need 0 <= calls_few < calls_many, got {calls_few} and {calls_many}")
    return (wall_many_us - wall_few_us) / (calls_many - calls_few)


def clock_is_slow(
    child_us: float, *, supervisor_us: float, tolerance: float, floor_us: float = 0.5
) -> bool:
    """Return whether the child says less of one call than the supervisor's slope does.

    supervisor - child > max(tolerance · |supervisor|, floor). A child that says more accuses
    itself, and is believed. Noise that exceeds the work makes both slopes 0 or less, alike. What is
    not finite is no time.

    Args:
        child_us: slope of the same calls by the child's clock.
        supervisor_us: `slope_us` by the supervisor's.
        tolerance: relative, such as 0.10.
        floor_us: below this difference the clocks' resolution decides (device events: 0.5 us).
    """
    if not (math.isfinite(child_us) and math.isfinite(supervisor_us)):
        return True
    return supervisor_us - child_us > max(tolerance * abs(supervisor_us), floor_us)
