"""Racing: paired times to a speed-up with its interval, and when to stop timing.

Pure: numbers in, numbers out. A pair is one time of the baseline and one of the candidate taken
side by side, in an order that a coin decides. What the coins support is said (kopt.coin_interval):
a host whose load comes and goes, in bursts as long as a race, makes an interval wide, and no win.

What a load does to one of the two processes alone, pair after pair, no coin undoes: a scheduler may
leave one on a crowded processor as long as a race takes. The kernel counts how long each waited for
a processor; the net times are without that. What is claimed holds by both.
Source: profiling notes §D.2 and §D.3 (paired log ratios, the margin); Mytkowicz et al., Producing
Wrong Data Without Doing Anything Obviously Wrong, ASPLOS 2009 (memory layout).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from kopt.coin_interval import center_of, is_look, level_at, shift, walsh_means

RaceState = Literal["continue", "faster", "slower", "tie"]


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


def speedup_interval(
    ratios: Sequence[float], *, net_ratios: Sequence[float] = (), apart: float = 0.0
) -> tuple[float, tuple[float, float]]:
    """Return (speed-up, (low, high)) of log ratios from `pair_ratios`.

    exp of the Hodges-Lehmann center, and of the interval that the coins give at the level of so
    many pairs. A race looks at its pairs again and again and stops where they look decided, and an
    equal kernel's interval leaves 1 out in fewer than one race of 300 all the same. With net
    ratios, the interval reaches over theirs too.

    Fewer than ten pairs support nothing beyond doubt: the interval is their range, and 1.

    Args:
        ratios: d_i of at least one pair.
        net_ratios: of the same pairs, from times without what was waited for a processor; none
            where that is not known.
        apart: logarithm of the ratio by which two processes of the same code may differ.

    Raises:
        ValueError: there are no pairs, or another number of net ratios.
    """
    if net_ratios and len(net_ratios) != len(ratios):
        raise ValueError(f"expected {len(ratios)} net ratios or none, got {len(net_ratios)}")
    limits = _limits(ratios, net_ratios)
    if limits is None:
        limits = min(0.0, *ratios, *net_ratios), max(0.0, *ratios, *net_ratios)
    low, high = limits[0] - apart, limits[1] + apart
    return math.exp(center_of(walsh_means(ratios))), (math.exp(low), math.exp(high))


def _limits(ratios: Sequence[float], net_ratios: Sequence[float]) -> tuple[float, float] | None:
    """The interval of the logarithm that holds by either; None where there are too few pairs."""
    level = level_at(len(ratios))
    gross = shift(ratios, level=level)
    net = shift(net_ratios, level=level) if net_ratios else gross
    if gross is None or net is None:
        return None
    return min(gross.low, net.low), max(gross.high, net.high)


class Race:
    """Candidate against baseline, pair by pair, until the outcome is clear.

    Usage: call `observe` with the log ratios of each new pair; stop when it no longer answers
    `continue`. With (low, high) the interval of `speedup_interval`, at every look
    (kopt.coin_interval) of at least min_pairs, and where max_pairs are used up:

    * `faster`: low > 1 + margin;
    * high < 1 + margin, surely no gain worth having: `slower` if high < 1 / (1 + margin), else
      `tie`;
    * `tie` too where max_pairs are used up;
    * `continue` otherwise, and always below min_pairs.
    """

    def __init__(self, *, min_pairs: int, max_pairs: int, margin: float = 0.01) -> None:
        """Start with no pairs.

        Args:
            min_pairs: pairs before any outcome, at least 1; fewer than ten decide nothing.
            max_pairs: pairs after which an open race is a tie, at least min_pairs.
            margin: relative gain that a win must exceed, such as 0.01.

        Raises:
            ValueError: one of them is out of range.
        """
        if not 1 <= min_pairs <= max_pairs:
            raise ValueError(f"need 1 <= min_pairs <= max_pairs, got {min_pairs} and {max_pairs}")
        if not margin >= 0.0:
            raise ValueError(f"margin must be >= 0, got {margin:g}")
        self._min_pairs = min_pairs
        self._max_pairs = max_pairs
        self._gate = math.log1p(margin)
        self._ratios: list[float] = []
        self._net_ratios: list[float] = []

    @property
    def ratios(self) -> tuple[float, ...]:
        """Every log ratio observed, in order; for `speedup_interval`."""
        return tuple(self._ratios)

    @property
    def net_ratios(self) -> tuple[float, ...]:
        """The same of net times; none where nothing is known of them."""
        return tuple(self._net_ratios)

    @property
    def state(self) -> RaceState:
        """The outcome so far."""
        num_pairs = len(self._ratios)
        is_over = num_pairs >= self._max_pairs
        if num_pairs < self._min_pairs or not (is_over or is_look(num_pairs)):
            return "continue"
        limits = _limits(self._ratios, self._net_ratios)
        if limits is not None:
            low, high = limits
            if low > self._gate:
                return "faster"
            if high < self._gate:
                return "slower" if high < -self._gate else "tie"
        return "tie" if is_over else "continue"

    def observe(self, ratios: Sequence[float], *, net_ratios: Sequence[float] = ()) -> RaceState:
        """Add the log ratios of new pairs (from `pair_ratios`) and return the outcome so far.

        Args:
            ratios: of one pair or more; a look that they skip is not made up for.
            net_ratios: of the same pairs without what was waited for a processor; none where that
                is not known, of this pair or any other.

        Raises:
            ValueError: a ratio is not finite, or there is another number of net ratios.
        """
        for ratio in (*ratios, *net_ratios):
            if not math.isfinite(ratio):
                raise ValueError(f"a log ratio must be finite, got {ratio}")
        self._ratios += ratios
        self._net_ratios += net_ratios
        if self._net_ratios and len(self._net_ratios) != len(self._ratios):
            raise ValueError(
                f"expected net ratios of all {len(self._ratios)} pairs or none, "
                f"got {len(self._net_ratios)}"
            )
        return self.state
