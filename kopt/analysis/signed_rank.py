"""Wilcoxon's signed-rank test, paired and one-sided: are the first arm's scores higher?

Tied pairs (no difference) are left out and counted. p is exact, ranks that tie included, up to
EXACT_PAIRS: scipy's exact p refuses ties, and the approximation is too kind to few pairs (three
equal differences give 0.042, where one in eight assignments of signs does as well).
Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, §3.1; KernelPro App. C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

EXACT_PAIRS = 400
"""Pairs up to which p is exact; beyond, the normal approximation."""
TIE = 1e-12
"""Differences of logarithms up to this are rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRank:
    """What the test found."""

    num: int
    """Pairs that differ."""
    wins: int
    losses: int
    ties: int
    statistic: float
    """W+, the sum of the ranks of the wins."""
    z: float | None
    """W+ in standard deviations from what chance gives; None where no pair differs."""
    p: float | None
    """Chance of such a W+ or more where neither is better; None where no pair differs."""
    least_p: float | None
    """Least p that so many pairs can give: where it is above 0.05, nothing could be found."""
    effect: float | None
    """Matched-pairs rank-biserial correlation, -1 to 1: (W+ - W-) ÷ (W+ + W-)."""


def signed_rank(differences: Sequence[float]) -> SignedRank:
    """Test whether differences (first - second) tend to be above 0.

    Args:
        differences: one a problem, each finite; logarithms of ratios here.

    Raises:
        ValueError: a difference is not finite.
    """
    if not all(math.isfinite(each) for each in differences):
        raise ValueError("expected finite differences")
    kept = np.array([each for each in differences if abs(each) > TIE])
    ties = len(differences) - len(kept)
    num = len(kept)
    if not num:
        return SignedRank(
            num=0,
            wins=0,
            losses=0,
            ties=ties,
            statistic=0.0,
            z=None,
            p=None,
            least_p=None,
            effect=None,
        )
    from scipy.special import ndtr  # a second, which one arm does without
    from scipy.stats import rankdata

    # Rounding must not order what is equal: 2.0 / 1.0 and 4.0 / 2.0 are one ratio.
    ranks = rankdata(np.round(np.abs(kept), 12))
    statistic = float(ranks[kept > 0].sum())
    total = num * (num + 1) / 2.0
    z = (statistic - total / 2.0) / math.sqrt(float((ranks**2).sum()) / 4.0)
    exact = num <= EXACT_PAIRS
    return SignedRank(
        num=num,
        wins=int((kept > 0).sum()),
        losses=int((kept < 0).sum()),
        ties=ties,
        statistic=statistic,
        z=z,
        p=_exact_p(ranks, statistic) if exact else float(ndtr(-z)),
        least_p=2.0**-num,
        effect=2.0 * statistic / total - 1.0,
    )


def _exact_p(ranks: np.ndarray[tuple[int, ...], np.dtype[np.float64]], statistic: float) -> float:
    """Return P(W+ >= statistic) where each rank counts with a chance of one half."""
    doubled = np.rint(2.0 * ranks).astype(np.int64)  # ranks that tie are halves
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    reach = 0
    for rank in doubled:
        chances[rank : reach + rank + 1] += chances[: reach + 1].copy()
        reach += int(rank)
        chances[: reach + 1] /= 2.0
    return min(1.0, float(chances[round(2.0 * statistic) :].sum()))
