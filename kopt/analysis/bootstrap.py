"""Bootstrap intervals over problems and seeds: problems are drawn, then seeds within each.

Source: the percentile interval of Efron; two-stage drawing with replacement at both stages
(Davison and Hinkley, Bootstrap Methods and their Application, §3.8). The same data and seed give
the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

REPLICATES = 4_000
LEVEL = 0.95
CHUNK_VALUES = 500_000
"""Values drawn at once: some arrays of 4 MB."""


def interval_of_mean(
    groups: Sequence[Sequence[float]],
    *,
    seed: int,
    level: float = LEVEL,
    replicates: int = REPLICATES,
) -> tuple[float, float] | None:
    """Return the interval of the mean over groups of each group's mean.

    Args:
        groups: for each problem the values of its seeds; each has at least one.
        seed: of the drawing.
        level: coverage, between 0 and 1.
        replicates: times that the whole is drawn again.

    Returns:
        Low and high end; None where there are fewer than two groups, from which nothing can be
        said about others.
    """
    if len(groups) < 2:
        return None
    means = _means(groups, rng=np.random.default_rng(seed), replicates=replicates)
    low, high = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)


def interval_of_geomean(
    log_groups: Sequence[Sequence[float]], *, seed: int
) -> tuple[float, float] | None:
    """Return the 95 % interval of a geometric mean, or of a ratio of two; groups of logarithms."""
    found = interval_of_mean(log_groups, seed=seed)
    return None if found is None else (math.exp(found[0]), math.exp(found[1]))


def _means(
    groups: Sequence[Sequence[float]], *, rng: np.random.Generator, replicates: int
) -> NDArray[np.float64]:
    """Return the mean of each replicate, shape (replicates,)."""
    sizes = np.array([len(group) for group in groups])
    widest = int(sizes.max())
    values = np.zeros((len(groups), widest))
    for row, group in enumerate(groups):
        values[row, : len(group)] = group
    chunk = max(1, CHUNK_VALUES // (len(groups) * widest))
    found = []
    for begin in range(0, replicates, chunk):
        rows = min(chunk, replicates - begin)
        drawn = rng.integers(len(groups), size=(rows, len(groups)))
        size = sizes[drawn][..., np.newaxis]
        seeds = np.floor(rng.random((rows, len(groups), widest)) * size).astype(np.int64)
        picked = values[drawn[..., np.newaxis], seeds]
        counted = np.arange(widest) < size  # a problem with fewer seeds draws fewer
        found.append(((picked * counted).sum(axis=2) / size[..., 0]).mean(axis=1))
    return np.concatenate(found)
