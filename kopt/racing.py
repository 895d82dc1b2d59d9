"""Racing: paired times to a speed-up with its interval, and when to stop timing.

Pure: numbers in, numbers out. A pair is one time of the baseline and one of the candidate taken
side by side; the order alternates (ABBA), so that a slow drift cancels in the mean.
Source: profiling notes §D.2 (statistic) and §D.3 (stop rule).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

RaceState = Literal["continue", "faster", "slower", "tie"]


def pair_ratios(baseline_us: Sequence[float], *, candidate_us: Sequence[float]) -> list[float]:
    """Return d_i = ln(baseline_i / candidate_i) for each pair; above 0 the candidate is faster.

    Raises:
        ValueError: the lengths differ, or a time is not finite and above 0.
    """
    raise NotImplementedError


def speedup_interval(
    ratios: Sequence[float], *, level: float = 0.95
) -> tuple[float, tuple[float, float]]:
    """Return (speed-up, (low, high)) of log ratios from `pair_ratios`.

    Ten pairs and more: exp of the 10 % trimmed mean, with Yuen's t interval (winsorised
    variance). Six to nine: exp of the median, with its order-statistic interval. Fewer: exp of
    the median, with the wider of the range and the t interval of the mean.

    Args:
        ratios: d_i of at least two pairs, from `pair_ratios`.
        level: wanted coverage, between 0 and 1.

    Raises:
        ValueError: fewer than two pairs, or `level` is out of range.
    """
    raise NotImplementedError


class Race:
    """Candidate against baseline, pair by pair, until the outcome is clear.

    Usage: call `observe` with the log ratios of each new block of pairs; stop when it no longer
    answers `continue`. With m the trimmed mean, se its standard error over n pairs and
    h = c·(1 + (1 + c²)/(4(n-1)))·se at c = 3.3:

    * `faster`: m - h > ln(1 + margin);
    * `slower`: m + h < 0;
    * `tie`: m + h < ln(1 + margin), surely no gain worth having; or max_pairs are used up;
    * `continue` otherwise, and always below min_pairs.
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
        raise NotImplementedError

    @property
    def ratios(self) -> tuple[float, ...]:
        """Every log ratio observed, in order; for `speedup_interval`."""
        raise NotImplementedError

    @property
    def state(self) -> RaceState:
        """The outcome so far."""
        raise NotImplementedError

    def observe(self, ratios: Sequence[float]) -> RaceState:
        """Add the log ratios of new pairs (from `pair_ratios`) and return the outcome so far.

        Raises:
            ValueError: a ratio is not finite.
        """
        raise NotImplementedError
