"""The interval of a shift that fair coins give: it holds whatever the noise, memory and bursts too.

Pure: numbers in, numbers out. Who runs first in a pair is decided by a coin. Where both are equal
the coin decides the sign of the pair's log ratio, and nothing else does: its size is whatever the
host made of it. So, given the sizes, the signs are independent and fair, however long a burst of
another load lasts and however heavy the tails are, and Wilcoxon's signed-rank statistic has its
exact distribution. Its interval are order statistics of the means of any two values (Walsh).

A race looks at its pairs more than once, at fixed numbers of them; each look has a level of its
own, and together they spend ERROR: that is the chance that the interval of any look is beside the
true shift.
Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, §3.1 to §3.3; Lehmann and
Romano, Testing Statistical Hypotheses, §5.8 to §5.10 (randomised pairs); Jennison and Turnbull,
Group Sequential Methods, §9 (repeated intervals).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

ERROR = 1 / 300
"""Chance that an interval is beside the truth, both sides and all looks together."""
_FIRST_LOOKS = ((10, 1 / 1_024), (14, 3 / 16_384), (20, 1.3e-4), (28, 1.3e-4), (40, 1.3e-4))
"""Pairs at a look, and what a side may spend there. Fewer than 10 cannot tell: nine coins agree in
one of 256 races. At 10 all must agree, at 14 all but the smallest or the second smallest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Where the middle of paired differences lies."""

    center: float
    """The median of Walsh means (Hodges and Lehmann): one preempted pair does not move it."""
    low: float
    high: float


def looks() -> Iterator[tuple[int, float]]:
    """Yield the pairs at each look and the level of a side there, without end.

    All levels together are half of ERROR at most. Beyond 40 pairs each look has twice as many as
    the one before, and half of what was left.
    """
    left = ERROR / 2.0
    pairs = 0
    for pairs, level in _FIRST_LOOKS:
        left -= level
        yield pairs, level
    while True:
        pairs, left = 2 * pairs, left / 2.0
        yield pairs, left


def is_look(num_pairs: int) -> bool:
    """Return whether a race looks at its pairs when it has so many."""
    return next(pairs for pairs, _ in looks() if pairs >= num_pairs) == num_pairs


def level_at(num_pairs: int) -> float:
    """Return the level of a side for so many pairs.

    Pairs that are no look's are a race's last: it spends there whatever the looks before have left.
    """
    left = ERROR / 2.0
    for pairs, level in looks():
        if pairs >= num_pairs:
            return level if pairs == num_pairs else left
        left -= level
    raise AssertionError("looks have no end")


def shift(values: Sequence[float], *, level: float) -> Shift | None:
    """Return the center and the interval that is beside the truth with a chance of 2·level at most.

    Args:
        values: at least one, each finite.
        level: chance of either side, such as 0.001.

    Returns:
        None where so few values cannot give an interval of that level.

    Raises:
        ValueError: there are no values, or one is not finite.
    """
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError(f"need finite values, at least one; got {len(values)}")
    rank = outer_rank(len(values), level=level)
    if rank is None:
        return None
    means = walsh_means(values)
    return Shift(center=center_of(means), low=means[rank], high=means[-1 - rank])


def walsh_means(values: Sequence[float]) -> list[float]:
    """Return the means of any two values, of each with itself too, in ascending order."""
    array = np.asarray(values, dtype=np.float64)
    rows, columns = _any_two(len(array))
    means: list[float] = np.sort((array[rows] + array[columns]) / 2.0).tolist()
    return means


@lru_cache(maxsize=4)
def _any_two(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of any two of so many, of each with itself too."""
    rows, columns = np.triu_indices(count)
    return rows, columns


def center_of(means: Sequence[float]) -> float:
    """Return the median of means that are in order."""
    half = len(means) // 2
    return means[half] if len(means) % 2 else (means[half - 1] + means[half]) / 2.0


@cache
def outer_rank(num_values: int, *, level: float) -> int | None:
    """Return the largest w with P(W ≤ w) ≤ level, W the signed-rank statistic of fair signs.

    The interval leaves out that many Walsh means at each end; None where even P(W = 0) is more.
    """
    chances = np.ones(1)
    for rank in range(1, num_values + 1):
        grown = np.zeros(len(chances) + rank)
        grown[: len(chances)] += chances
        grown[rank:] += chances
        chances = grown / 2.0
    found = int(np.searchsorted(np.cumsum(chances), level * (1.0 + 1e-9), side="right")) - 1
    return found if found >= 0 else None
