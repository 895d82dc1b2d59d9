"""Racing: paired times to a speed-up with its interval, and when to stop timing.

Pure: numbers in, numbers out. A pair is one time of the baseline and one of the candidate taken
side by side; the order alternates (ABBA), so that a slow drift cancels in the mean.
Source: profiling notes §D.2 (statistic) and §D.3 (stop rule).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtrit

RaceState = Literal["continue", "faster", "slower", "tie"]

TRIM = 0.1
"""Share of the pairs cut from each end: a preempted block must not decide."""
CRITICAL = 3.3
"""Critical value of the race (§D.3): wide enough for a look after every block."""
CLAIM_CRITICAL = 3.5
"""The same of the interval that is reported: a claim asks for no less than the decision to stop."""
FEWEST_PAIRS = 4
FEW_PAIRS = 6
"""Below this the spread of a trimmed mean is hardly known."""


def pair_ratios(baseline_us: Sequence[float], *, candidate_us: Sequence[float]) -> list[float]:
    """Return d_i = ln(baseline_i / candidate_i) for each pair; above 0 the candidate is faster.

    Raises:
        ValueError: the lengths differ, or a time is not finite and above 0.
    """
    if len(baseline_us) != len(candidate_us):
        raise ValueError(
            f"a pair has two times, got {len(baseline_us)} of the baseline "
            f"and {len(candidate_us)} of the candidate"
        )
    for time_us in (*baseline_us, *candidate_us):
        if not (math.isfinite(time_us) and time_us > 0.0):
            raise ValueError(f"a time must be finite and above 0 us, got {time_us:g}")
    return [math.log(base / other) for base, other in zip(baseline_us, candidate_us, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedMean:
    """A trimmed mean and how well it is known."""

    mean: float
    std_error: float
    """Of the trimmed mean, from the winsorised variance (Yuen 1974)."""
    num_kept: int
    """Values left after trimming; the t distribution has one degree less."""


def trimmed_mean(values: Sequence[float], *, trim: float = TRIM) -> TrimmedMean:
    """Return the mean without the lowest and highest share, at least one value on each side.

    se = s_w·√(n-1) / √(h·(h-1)), s_w² the winsorised variance, h the values kept.

    Source: Yuen, Biometrika 61 (1974); Tukey and McLaughlin (1963).

    Raises:
        ValueError: fewer than four values: nothing would be left to vary.
    """
    if len(values) < FEWEST_PAIRS:
        raise ValueError(f"need at least {FEWEST_PAIRS} values, got {len(values)}")
    ordered = sorted(values)
    cut = max(1, int(trim * len(ordered)))
    kept = ordered[cut:-cut]
    winsorised = [kept[0]] * cut + kept + [kept[-1]] * cut
    spread = math.fsum((value - statistics.fmean(winsorised)) ** 2 for value in winsorised)
    return TrimmedMean(
        mean=statistics.fmean(kept),
        std_error=math.sqrt(spread / (len(kept) * (len(kept) - 1))),
        num_kept=len(kept),
    )


def speedup_interval(ratios: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Return (speed-up, (low, high)) of log ratios from `pair_ratios`.

    exp of the 10 % trimmed mean, plus or minus `half_width` at c = 3.5. A race looks at its pairs
    again and again and stops where they look decided, so that a 95 % interval, right for a number
    of pairs chosen beforehand, puts an equal kernel above 1 in one race of forty. This one does in
    less than one of 300, whatever the noise (simulated: t4 noise of 0.2 to 5 %, 6 to 40 pairs), and
    has 1 below it in 99 % of the races of a true gain of 3 % at 3 % noise.

    Below six pairs also no narrower than the pairs' range; with two or three, the wider of the
    range and the 95 % t interval of the mean.

    Args:
        ratios: d_i of at least two pairs, from `pair_ratios`.

    Raises:
        ValueError: fewer than two pairs.
    """
    if len(ratios) < 2:
        raise ValueError(f"an interval needs at least two pairs, got {len(ratios)}")
    if len(ratios) >= FEWEST_PAIRS:
        trimmed = trimmed_mean(ratios)
        center, half = trimmed.mean, half_width(trimmed, critical=CLAIM_CRITICAL)
    else:
        center = statistics.fmean(ratios)
        error = statistics.stdev(ratios) / math.sqrt(len(ratios))
        half = float(stdtrit(len(ratios) - 1, 0.975)) * error
    low, high = center - half, center + half
    if len(ratios) < FEW_PAIRS:
        low, high = min(low, *ratios), max(high, *ratios)
    return math.exp(center), (math.exp(low), math.exp(high))


def half_width(trimmed: TrimmedMean, *, critical: float) -> float:
    """Return c·(1 + (1 + c²)/(4(n-1)))·se, c the critical value, n the values kept."""
    degrees = trimmed.num_kept - 1
    return critical * (1.0 + (1.0 + critical**2) / (4.0 * degrees)) * trimmed.std_error


class Race:
    """Candidate against baseline, pair by pair, until the outcome is clear.

    Usage: call `observe` with the log ratios of each new block of pairs; stop when it no longer
    answers `continue`. With m the trimmed mean, se its standard error over n kept pairs and
    h = c·(1 + (1 + c²)/(4(n-1)))·se at c = 3.3:

    * `faster`: m - h > ln(1 + margin);
    * m + h < ln(1 + margin), surely no gain worth having: `slower` if m < -ln(1 + margin),
      else `tie`;
    * `tie` too where max_pairs are used up;
    * `continue` otherwise, and always below min_pairs.

    The margin is what keeps repeated looks honest: without it, one equal kernel in nine wins.
    """

    def __init__(self, *, min_pairs: int, max_pairs: int, margin: float = 0.01) -> None:
        """Start with no pairs.

        Args:
            min_pairs: pairs before any outcome, at least 4.
            max_pairs: pairs after which an open race is a tie, at least min_pairs.
            margin: relative gain that a win must exceed, such as 0.01.

        Raises:
            ValueError: one of them is out of range.
        """
        if not FEWEST_PAIRS <= min_pairs <= max_pairs:
            raise ValueError(
                f"need {FEWEST_PAIRS} <= min_pairs <= max_pairs, got {min_pairs} and {max_pairs}"
            )
        if not margin >= 0.0:
            raise ValueError(f"margin must be >= 0, got {margin:g}")
        self._min_pairs = min_pairs
        self._max_pairs = max_pairs
        self._gate = math.log1p(margin)
        self._ratios: list[float] = []

    @property
    def ratios(self) -> tuple[float, ...]:
        """Every log ratio observed, in order; for `speedup_interval`."""
        return tuple(self._ratios)

    @property
    def state(self) -> RaceState:
        """The outcome so far."""
        if len(self._ratios) < self._min_pairs:
            return "continue"
        trimmed = trimmed_mean(self._ratios)
        half = half_width(trimmed, critical=CRITICAL)
        if trimmed.mean - half > self._gate:
            return "faster"
        if trimmed.mean + half < self._gate:
            return "slower" if trimmed.mean < -self._gate else "tie"
        return "tie" if len(self._ratios) >= self._max_pairs else "continue"

    def observe(self, ratios: Sequence[float]) -> RaceState:
        """Add the log ratios of new pairs (from `pair_ratios`) and return the outcome so far.

        Raises:
            ValueError: a ratio is not finite.
        """
        for ratio in ratios:
            if not math.isfinite(ratio):
                raise ValueError(f"a log ratio must be finite, got {ratio}")
        self._ratios.extend(ratios)
        return self.state
