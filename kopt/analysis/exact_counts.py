"""Fisher's exact test of outcome counts: do two arms end alike? Two-sided.

With two outcomes it is Fisher's own test, by scipy; with more it is its extension by Freeman and
Halton: the chance, margins given, of a table that is no likelier than the one seen. Where there are
too many tables to list, tables are drawn with a fixed seed, and `method` says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

MAX_TABLES = 200_000
DRAWS = 100_000
DRAWING_SEED = 20_250_101
NO_LIKELIER = 1.0 + 1e-7
"""Tables whose chance is equal but for rounding count as no likelier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactCounts:
    """What the test found."""

    p: float
    method: Literal["exact", "drawn"]


def share_test(first: tuple[int, int], second: tuple[int, int]) -> float | None:
    """Return the p of Fisher's exact test of two shares; None where both are none or all.

    Args:
        first: number with and number without, of one arm.
        second: the same of the other.
    """
    table = np.array([first, second])
    if 0 in (sum(first), sum(second), first[0] + second[0], first[1] + second[1]):
        return None
    from scipy.stats import fisher_exact  # a second, which one arm does without

    return min(1.0, float(fisher_exact(table, alternative="two-sided")[1]))


def outcome_test(first: Mapping[str, int], second: Mapping[str, int]) -> ExactCounts | None:
    """Return the test of two rows of counts; None where fewer than two outcomes or rows hold any.

    Args:
        first: outcome to number of searches, of one arm.
        second: the same of the other.
    """
    names = sorted(name for name in {*first, *second} if first.get(name) or second.get(name))
    totals = [first.get(name, 0) + second.get(name, 0) for name in names]
    row = [first.get(name, 0) for name in names]
    if len(names) < 2 or not 0 < sum(row) < sum(totals):
        return None
    from scipy.stats import multivariate_hypergeom

    chance = multivariate_hypergeom(totals, sum(row))
    limit = float(chance.pmf(row)) * NO_LIKELIER
    if _num_at_most(totals) <= MAX_TABLES:
        tables = np.array(list(_tables(totals, sum(row))))
        chances = np.atleast_1d(chance.pmf(tables))
        return ExactCounts(p=min(1.0, float(chances[chances <= limit].sum())), method="exact")
    rng = np.random.default_rng(DRAWING_SEED)
    drawn = rng.multivariate_hypergeometric(totals, sum(row), size=DRAWS, method="marginals")
    as_rare = int((chance.pmf(drawn) <= limit).sum())
    return ExactCounts(p=(as_rare + 1) / (DRAWS + 1), method="drawn")


def _num_at_most(totals: list[int]) -> int:
    # The last column follows from the others, so the widest is left to follow.
    return math.prod(total + 1 for total in sorted(totals)[:-1])


def _tables(totals: list[int], row_sum: int) -> Iterator[list[int]]:
    """Give every first row that the margins allow."""
    widest = totals.index(max(totals))
    others = [total for place, total in enumerate(totals) if place != widest]
    for counts in itertools.product(*(range(total + 1) for total in others)):
        rest = row_sum - sum(counts)
        if 0 <= rest <= totals[widest]:
            yield [*counts[:widest], rest, *counts[widest:]]
