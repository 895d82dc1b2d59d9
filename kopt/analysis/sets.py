"""Figures of each set of problems, and of each family: where an arm is good.

A set is a name up to its last `/`: `kernelbench/level1` of `kernelbench/level1/12`.
Source: KernelOPT, table 1, panels A and C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kopt.analysis.bootstrap import interval_of_geomean
from kopt.analysis.outcomes import OPTIMIZED, outcomes
from kopt.analysis.score import geomean_of, groups, scores
from kopt.analysis.trial import UNSOLVED, OverSeeds, Trial

NO_SET = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFigures:
    """One arm on one set, or one family."""

    name: str
    problems: int
    searches: int
    geomean: float
    """Over problems, uncapped, unsolved = 1."""
    interval: tuple[float, float] | None
    """95 % bootstrap; None with one problem."""
    greatest: float | None
    """Highest speed-up of a search; None where none is solved."""
    optimized: int
    """Searches."""
    outcomes: dict[str, int]


def set_figures(trials: Iterable[Trial], *, over_seeds: OverSeeds, seed: int) -> list[SetFigures]:
    """Return the figures of each set, by name; `seed` is the bootstrap's."""
    return _figures(trials, name=_set_of, over_seeds=over_seeds, seed=seed)


def family_figures(
    trials: Iterable[Trial], *, over_seeds: OverSeeds, seed: int
) -> list[SetFigures]:
    """Return the figures of each family of problems, by name; `seed` is the bootstrap's."""
    return _figures(
        trials, name=lambda trial: trial.family or NO_SET, over_seeds=over_seeds, seed=seed
    )


def _figures(
    trials: Iterable[Trial],
    *,
    name: Callable[[Trial], str],
    over_seeds: OverSeeds,
    seed: int,
) -> list[SetFigures]:
    of_name: dict[str, list[Trial]] = {}
    for trial in trials:
        of_name.setdefault(name(trial), []).append(trial)
    return [_of(each, of_name[each], over_seeds=over_seeds, seed=seed) for each in sorted(of_name)]


def _of(name: str, trials: list[Trial], *, over_seeds: OverSeeds, seed: int) -> SetFigures:
    table = scores(trials)
    counts = outcomes(trials)
    return SetFigures(
        name=name,
        problems=len(table),
        searches=len(trials),
        geomean=geomean_of(table, over_seeds=over_seeds) or UNSOLVED,
        interval=interval_of_geomean(groups(table, over_seeds=over_seeds), seed=seed),
        greatest=max((t.speedup for t in trials if t.speedup is not None), default=None),
        optimized=counts.get(OPTIMIZED, 0),
        outcomes=counts,
    )


def _set_of(trial: Trial) -> str:
    return trial.problem_name.rpartition("/")[0] or NO_SET
