"""The figures of one arm on one set of terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from kopt.analysis.best_at import BestAt, best_at
from kopt.analysis.bootstrap import interval_of_geomean
from kopt.analysis.outcomes import bands, outcomes, root_causes, verdict_kinds
from kopt.analysis.proportion import FastP, Share, fast_p, share_of
from kopt.analysis.score import CAPS, geomean_of, geometric_mean, groups, scores
from kopt.analysis.sets import SetFigures, family_figures, set_figures
from kopt.analysis.trial import OverSeeds, Trial
from kopt.analysis.turns import TurnFigures, class_figures, tool_figures


@dataclass(frozen=True, slots=True, kw_only=True)
class CappedMean:
    """Geometric means over problems under one cap."""

    cap: float | None
    """None: as measured."""
    geomean: float
    """Unsolved searches count as 1."""
    interval: tuple[float, float] | None
    """95 % bootstrap over problems and seeds; None with one problem."""
    solved_only: float | None
    """Of solved searches alone; None where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySaved:
    """Reference ÷ candidate of the best candidates whose energy was recorded."""

    searches: int
    measured: float | None
    """Geometric mean by millijoules; None where none was measured."""
    proxy: float | None
    """Geometric mean by the proxy of KernelPro Eq. 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFigures:
    """What an arm reached, and what it took."""

    arm: str
    runs: tuple[str, ...]
    problems: int
    seeds: tuple[int, ...]
    searches: int
    candidates: int
    """Verdicts of all searches."""
    candidates_per_search: float
    """Median."""
    cached: int
    device_s: float
    wall_s: float
    tokens_in: int
    tokens_out: int
    cost_usd: float
    means: tuple[CappedMean, ...]
    """Under each of CAPS, the first uncapped."""
    best_of_seeds: float
    """Geometric mean over problems of the best of their searches, uncapped, unsolved = 1."""
    fast: tuple[FastP, ...]
    solved: Share
    """With a correct candidate."""
    plateau: Share
    """With a correct candidate, and none above the baseline (KernelPro App. C)."""
    best_at: tuple[BestAt, ...]
    outcomes: dict[str, int]
    root_causes: dict[str, int]
    verdicts: dict[str, int]
    sets: tuple[SetFigures, ...]
    families: tuple[SetFigures, ...]
    bands: dict[str, int]
    tools: tuple[TurnFigures, ...]
    classes: tuple[TurnFigures, ...]
    energy: EnergySaved | None


def arm_figures(
    trials: Sequence[Trial],
    *,
    steps: Sequence[int],
    cap: float | None,
    over_seeds: OverSeeds,
    seed: int,
) -> ArmFigures:
    """Return the figures of an arm.

    Args:
        trials: of one arm on the same terms, at least one.
        steps: values of N for best@N.
        cap: most that a search counts in best@N; None for no cap.
        over_seeds: what a problem's score is of its searches'.
        seed: of the bootstrap.

    Raises:
        ValueError: there is no trial.
    """
    solved = share_of(trials, holds=lambda t: t.speedup is not None, over_seeds=over_seeds)
    plateau = share_of(trials, holds=_is_plateau, over_seeds=over_seeds)
    best_of_seeds = geomean_of(scores(trials), over_seeds="best")
    if solved is None or plateau is None or best_of_seeds is None:
        raise ValueError("an arm has at least one search")
    return ArmFigures(
        arm=trials[0].arm,
        runs=tuple(dict.fromkeys(trial.run for trial in trials)),
        problems=len({trial.problem for trial in trials}),
        seeds=tuple(sorted({trial.seed for trial in trials})),
        searches=len(trials),
        candidates=sum(trial.candidates for trial in trials),
        candidates_per_search=float(median(trial.candidates for trial in trials)),
        cached=sum(trial.cached for trial in trials),
        device_s=math.fsum(trial.device_s for trial in trials),
        wall_s=math.fsum(trial.wall_s for trial in trials),
        tokens_in=sum(trial.tokens_in for trial in trials),
        tokens_out=sum(trial.tokens_out for trial in trials),
        cost_usd=math.fsum(trial.cost_usd for trial in trials),
        means=tuple(capped_means(trials, over_seeds=over_seeds, seed=seed)),
        best_of_seeds=best_of_seeds,
        fast=tuple(fast_p(trials, over_seeds=over_seeds)),
        solved=solved,
        plateau=plateau,
        best_at=tuple(best_at(trials, steps=steps, cap=cap, over_seeds=over_seeds)),
        outcomes=outcomes(trials),
        root_causes=root_causes(trials),
        verdicts=verdict_kinds(trials),
        bands=bands(trials),
        sets=tuple(set_figures(trials, over_seeds=over_seeds, seed=seed)),
        families=tuple(family_figures(trials, over_seeds=over_seeds, seed=seed)),
        tools=tuple(tool_figures(trials)),
        classes=tuple(class_figures(trials)),
        energy=energy_saved(trials),
    )


def capped_means(
    trials: Sequence[Trial],
    *,
    caps: Sequence[float | None] = CAPS,
    over_seeds: OverSeeds,
    seed: int,
) -> list[CappedMean]:
    """Return the geometric means of one arm under each cap; [] of no trials."""
    found = []
    for cap in caps:
        table = scores(trials, cap=cap)
        geomean = geomean_of(table, over_seeds=over_seeds)
        if geomean is None:
            continue
        solved = scores(trials, cap=cap, solved_only=True)
        found.append(
            CappedMean(
                cap=cap,
                geomean=geomean,
                interval=interval_of_geomean(groups(table, over_seeds=over_seeds), seed=seed),
                solved_only=geomean_of(solved, over_seeds=over_seeds),
            )
        )
    return found


def energy_saved(trials: Sequence[Trial]) -> EnergySaved | None:
    """Return what best candidates save; None where no search recorded any energy."""
    known = [trial.energy for trial in trials if trial.energy is not None]
    if not known:
        return None
    return EnergySaved(
        searches=len(known),
        measured=geometric_mean([math.log(e.measured) for e in known if e.measured is not None]),
        proxy=geometric_mean([math.log(e.proxy) for e in known if e.proxy is not None]),
    )


def _is_plateau(trial: Trial) -> bool:
    return trial.speedup is not None and (trial.peak or trial.speedup) <= 1.0
