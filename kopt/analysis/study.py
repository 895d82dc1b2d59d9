"""A study: the figures of any number of runs, apart for each set of terms.

What does not compare is never mixed: terms (ladder, device, baseline, protocol, …) are strata of
their own, degenerate problems stand apart, two texts of one problem are two problems. Each is said
in a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from kopt.analysis.arm_figures import ArmFigures, arm_figures
from kopt.analysis.arms import Settings, pooled, told_apart
from kopt.analysis.best_at import grid
from kopt.analysis.compare import Comparison, compare_all
from kopt.analysis.trial import OverSeeds, Terms, Trial

FEWEST_PAIRS = 5
"""Pairs that differ below which one-sided p cannot be under 0.05."""
MAX_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a study is asked."""

    over_seeds: OverSeeds = "mean"
    cap: float | None = None
    """Most that a search counts in comparisons and in best@N; None for no cap."""
    at: int | None = None
    """Candidates of each search that comparisons of speed-ups count; None: all."""
    control: str | None = None
    """Arm that the others are held against; None compares each with each."""
    seed: int = 0
    """Of the bootstrap."""
    pool: bool = False
    """Take searches of one arm's name as repetitions, whatever their settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Everything on one set of terms."""

    terms: Terms
    arms: tuple[ArmFigures, ...]
    """In the order in which their searches started; of problems that are not degenerate."""
    comparisons: tuple[Comparison, ...]
    degenerate: tuple[ArmFigures, ...]
    """The same of degenerate problems, on which a speed-up means little."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All strata, and the trials that they are of."""

    strata: tuple[Stratum, ...]
    trials: tuple[Trial, ...]
    """As they were counted: with arms told apart."""
    notes: tuple[str, ...]


def study(trials: Iterable[Trial], *, settings: Mapping[str, Settings], asked: Asked) -> Study:
    """Return the study of trials.

    Args:
        trials: of any number of runs.
        settings: label of each run to what makes its arms (kopt.analysis.arms).
        asked: what is asked.
    """
    listed = list(trials)
    counted, notes = pooled(listed) if asked.pool else told_apart(listed, settings=settings)
    counted = _degenerate_everywhere(counted)
    notes += _two_texts(counted)
    by_terms: dict[Terms, list[Trial]] = {}
    for trial in counted:
        by_terms.setdefault(trial.terms, []).append(trial)
    notes += _strata_notes(by_terms)
    strata = [_stratum(terms, of_terms, asked=asked) for terms, of_terms in by_terms.items()]
    return Study(strata=tuple(strata), trials=tuple(counted), notes=tuple(notes))


def _stratum(terms: Terms, trials: Sequence[Trial], *, asked: Asked) -> Stratum:
    plain = [trial for trial in trials if not trial.degenerate]
    arms = _arms(plain, asked=asked)
    comparisons = compare_all(
        plain,
        cap=asked.cap,
        over_seeds=asked.over_seeds,
        seed=asked.seed,
        control=asked.control,
        at=asked.at,
    )
    return Stratum(
        terms=terms,
        arms=tuple(arms),
        comparisons=tuple(comparisons),
        degenerate=tuple(_arms([t for t in trials if t.degenerate], asked=asked)),
        notes=(*_arm_notes(arms), *_comparison_notes(comparisons, asked=asked)),
    )


def _arms(trials: Sequence[Trial], *, asked: Asked) -> list[ArmFigures]:
    of_arm: dict[str, list[Trial]] = {}
    for trial in trials:
        of_arm.setdefault(trial.arm, []).append(trial)
    steps = grid(max((trial.candidates for trial in trials), default=0))
    return [
        arm_figures(
            of_this, steps=steps, cap=asked.cap, over_seeds=asked.over_seeds, seed=asked.seed
        )
        for of_this in of_arm.values()
    ]


def _degenerate_everywhere(trials: Sequence[Trial]) -> list[Trial]:
    """A problem is degenerate for all of its searches, those without a verdict included."""
    degenerate = {trial.problem for trial in trials if trial.degenerate}
    return [
        replace(trial, degenerate=True)
        if trial.problem in degenerate and not trial.degenerate
        else trial
        for trial in trials
    ]


def _two_texts(trials: Sequence[Trial]) -> list[str]:
    texts: dict[str, set[str]] = {}
    for trial in trials:
        texts.setdefault(trial.problem_name, set()).add(trial.problem)
    several = [name for name, ids in texts.items() if len(ids) > 1]
    if not several:
        return []
    more = f" and {len(several) - MAX_NAMED} more" if len(several) > MAX_NAMED else ""
    return [
        f"{', '.join(several[:MAX_NAMED])}{more}: several revisions of the problem; each counts "
        "as a problem of its own, and searches of different ones are not paired"
    ]


def _strata_notes(by_terms: Mapping[Terms, Sequence[Trial]]) -> list[str]:
    if len(by_terms) < 2:
        return []
    differing = [
        field.name
        for field in fields(Terms)
        if len({getattr(terms, field.name) for terms in by_terms}) > 1
    ]
    return [
        f"{len(by_terms)} sets of terms, which differ in {', '.join(differing)}: each has its own "
        "tables, and nothing is compared across them"
    ]


def _arm_notes(arms: Sequence[ArmFigures]) -> list[str]:
    notes = []
    if any(arm.problems == 1 for arm in arms):
        notes.append("one problem: nothing can be said about others, so means have no interval")
    if len({(arm.problems, arm.seeds) for arm in arms}) > 1:
        notes.append(
            "arms have different problems or seeds: compare them in the paired table, not by "
            "their own means"
        )
    return notes


def _comparison_notes(comparisons: Sequence[Comparison], *, asked: Asked) -> list[str]:
    unpaired = [each for each in comparisons if not each.problems]
    notes = [
        f"{each.first} and {each.second} have no problem and seed in common: not compared"
        for each in unpaired[:MAX_NAMED]
    ]
    if len(unpaired) > MAX_NAMED:
        notes.append(f"{len(unpaired) - MAX_NAMED} more pairs of arms have nothing in common")
    tested = [each for each in comparisons if each.test is not None]
    if any(each.test is not None and not each.test.num for each in tested):
        notes.append("where every pair ties there is nothing to test, and p is -")
    if any(each.test is not None and 0 < each.test.num < FEWEST_PAIRS for each in tested):
        notes.append(
            f"fewer than {FEWEST_PAIRS} problems that differ: no p can be below 0.05, whatever "
            "the arms did"
        )
    if any(each.unpaired for each in comparisons if each.problems):
        notes.append("searches without a partner in the other arm are left out of comparisons")
    if asked.over_seeds == "best" and any(each.searches > each.problems for each in tested):
        notes.append("best of seeds: intervals are over problems alone")
    return notes
