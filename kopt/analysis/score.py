"""Scores: from searches to one number for each problem, with caps and the rule for the unsolved.

Everything here is natural logarithms of speed-ups, so that a mean is a geometric mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from kopt.analysis.trial import UNSOLVED, OverSeeds, Trial

CAPS: tuple[float | None, ...] = (None, 50.0, 25.0, 20.0, 10.0, 5.0)
"""Most that one search may count (KernelPro, table 5); None: as measured."""

Scores = dict[str, dict[int, float]]
"""Problem id to seed to ln(score)."""


def scores(
    trials: Iterable[Trial],
    *,
    cap: float | None = None,
    solved_only: bool = False,
    speedup: Callable[[Trial], float | None] = lambda trial: trial.speedup,
) -> Scores:
    """Return ln(min(speedup, cap)) of every search of one arm.

    Args:
        trials: of one arm, on the same terms; a problem and seed at most once.
        cap: most that a search counts, above 1; None for no cap.
        solved_only: leave searches without a correct candidate out; else they count as UNSOLVED.
        speedup: what of a search is scored; None where it is unsolved.
    """
    found: Scores = {}
    for trial in trials:
        value = speedup(trial)
        if value is None and solved_only:
            continue
        value = UNSOLVED if value is None else value
        capped = value if cap is None else min(value, cap)
        found.setdefault(trial.problem, {})[trial.seed] = math.log(capped)
    return found


def of_problem(values: Iterable[float], *, over_seeds: OverSeeds) -> float:
    """Return one problem's score of its searches': their mean, or the greatest.

    Raises:
        ValueError: there are none.
    """
    listed = list(values)
    if not listed:
        raise ValueError("a problem has at least one search")
    return max(listed) if over_seeds == "best" else math.fsum(listed) / len(listed)


def groups(table: Mapping[str, Mapping[int, float]], *, over_seeds: OverSeeds) -> list[list[float]]:
    """Return for each problem the values that an interval is drawn from.

    All of its seeds' for the mean. For the best of seeds it is the best alone: the best of seeds
    drawn again is lower on average, so an interval from it would lie beside its own estimate.
    """
    if over_seeds == "mean":
        return [list(seeds.values()) for seeds in table.values()]
    return [[max(seeds.values())] for seeds in table.values()]


def geometric_mean(logs: Sequence[float]) -> float | None:
    """Return exp of the mean of logarithms; None of nothing."""
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def geomean_of(table: Mapping[str, Mapping[int, float]], *, over_seeds: OverSeeds) -> float | None:
    """Return the geometric mean over problems of their scores; None where there is no problem."""
    return geometric_mean(
        [of_problem(seeds.values(), over_seeds=over_seeds) for seeds in table.values()]
    )
