"""Which trials are one arm: equal names over several runs are one only if their settings are.

Runs are merged where they are shards of one experiment: the same settings, other problems or seeds.
Where settings differ, the arm is told apart by those that do; where a problem and seed was searched
twice with the same settings, by its run. `pooled` instead takes all of a name as repetitions, as
KernelPro's seeds are temperatures and rounds together (App. C).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kopt.analysis.trial import Terms, Trial

Settings = Mapping[str, object]
"""Dotted key of the configuration to its value; those that make an arm."""
MAX_KEYS = 3
"""Settings that differ that a name or a note holds."""
MAX_ARMS = 4
"""New names that a note holds."""


def told_apart(
    trials: Sequence[Trial], *, settings: Mapping[str, Settings]
) -> tuple[list[Trial], list[str]]:
    """Return the trials with arms that are each one setting, and a note for each arm split.

    Args:
        trials: of any number of runs.
        settings: label of each run to its settings; a key that only one of two runs has is of
            another version of kopt and tells nothing.
    """
    names: dict[tuple[str, str], str] = {}
    notes = []
    for arm, runs in _runs_of(trials).items():
        labels, why = _labels([t for t in trials if t.arm == arm], runs=runs, settings=settings)
        if why:
            given = list(dict.fromkeys(f"{arm}{label}" for label in labels.values()))
            more = f" and {len(given) - MAX_ARMS} more" if len(given) > MAX_ARMS else ""
            listed = ", ".join(given[:MAX_ARMS])
            notes.append(f"arm {arm} is told apart as {listed}{more}: {why}")
        names.update({(arm, run): f"{arm}{label}" for run, label in labels.items()})
    return [replace(trial, arm=names[trial.arm, trial.run]) for trial in trials], notes


def pooled(trials: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """Return the trials with the searches of each arm and problem numbered anew as seeds.

    They are numbered in the order given, so that arms are paired by it; a note says which arms
    have several runs.
    """
    counts: Counter[tuple[str, str, Terms]] = Counter()
    renumbered = []
    for trial in trials:
        key = trial.arm, trial.problem, trial.terms
        renumbered.append(replace(trial, seed=counts[key]))
        counts[key] += 1
    notes = [
        f"arm {arm} pools {len(runs)} runs: its searches of a problem count as seeds, in order"
        for arm, runs in _runs_of(trials).items()
        if len(runs) > 1
    ]
    return renumbered, notes


def _runs_of(trials: Sequence[Trial]) -> dict[str, list[str]]:
    runs_of: dict[str, dict[str, None]] = {}
    for trial in trials:
        runs_of.setdefault(trial.arm, {})[trial.run] = None
    return {arm: list(runs) for arm, runs in runs_of.items()}


def _labels(
    trials: Sequence[Trial], *, runs: Sequence[str], settings: Mapping[str, Settings]
) -> tuple[dict[str, str], str]:
    """Return what is added to an arm's name for each run, and why; nothing where it is one arm."""
    of_run = {run: settings.get(run, {}) for run in runs}
    keys = _differing(list(of_run.values()))
    labels = {run: _values(of_run[run], keys) for run in runs}
    why = ""
    if keys:
        more = f" and {len(keys) - MAX_KEYS} more" if len(keys) > MAX_KEYS else ""
        why = f"settings differ ({', '.join(keys[:MAX_KEYS])}{more})"
        if len(keys) > MAX_KEYS:  # the values named may not tell them apart
            labels = {run: f"@{run}" for run in runs}
    searched = Counter((labels[t.run], t.problem, t.seed, t.terms) for t in trials)
    twice = {label for (label, *_), number in searched.items() if number > 1}
    if twice:
        labels = {run: f"{la}@{run}" if la in twice else la for run, la in labels.items()}
        why = f"{why}; " if why else ""
        why += "the same problems and seeds were searched in more than one run"
    return labels, why


def _differing(settings: Sequence[Settings]) -> list[str]:
    shared = [key for key in settings[0] if all(key in other for other in settings)]
    return [key for key in shared if len({repr(each[key]) for each in settings}) > 1]


def _values(settings: Settings, keys: Sequence[str]) -> str:
    told = ", ".join(f"{key}={settings[key]}" for key in keys)
    return f"({told})" if told else ""
