"""The runs that `kopt stats` is asked about: found, read, and what of them is counted."""

from __future__ import annotations

import difflib
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kopt.analysis.study import Asked, Study, study
from kopt.analysis.trial import Trial
from kopt.data.rundir import RunDir
from kopt.data.search_digest import SpeedupOver
from kopt.data.trials import RunTrials, read_trials
from kopt.errors import ConfigError

MAX_FAILURE = 90
"""Characters of a failure that a note holds."""

_STATUS_WORDS = {
    "running": "still goes on",
    "interrupted": "was interrupted; `kopt resume {path}` finishes it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRun:
    """One run, as it was read."""

    label: str
    path: str
    status: str
    searches: int
    """Started; those left out included."""
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What the tables are made of."""

    asked: Asked
    over: SpeedupOver
    runs: tuple[CountedRun, ...]
    study: Study
    notes: tuple[str, ...]
    """Of the runs; the study and its strata have notes of their own."""


def count(
    paths: Sequence[str], *, asked: Asked, over: SpeedupOver, with_unfinished: bool
) -> Counted:
    """Read runs and return their statistics.

    Args:
        paths: run folders, or folders of run folders.
        asked: of the study.
        over: which speed-up counts.
        with_unfinished: count searches that have not ended.

    Raises:
        ConfigError: a path is no run, no search can be counted, or the control is no arm.
        StoreError: a journal is damaged, or of another version.
    """
    folders, notes = _folders(paths)
    labels = _labels(folders)
    trials: list[Trial] = []
    runs: list[CountedRun] = []
    settings = {}
    for folder, label in zip(folders, labels, strict=True):
        read = read_trials(RunDir.open(folder), label=label, over=over)
        settings[label] = read.settings
        kept = [trial for trial in read.trials if trial.ended or with_unfinished]
        notes += _run_notes(read, folder, kept=len(kept), with_unfinished=with_unfinished)
        trials += kept
        runs.append(
            CountedRun(
                label=label,
                path=str(folder),
                status=read.status,
                searches=len(read.trials),
                left_out=len(read.trials) - len(kept),
            )
        )
    if not trials:
        raise ConfigError("\n".join([*notes, "no search to count: expected one that has ended"]))
    found = study(trials, settings=settings, asked=asked)
    _check_control(found, asked.control)
    return Counted(asked=asked, over=over, runs=tuple(runs), study=found, notes=tuple(notes))


def _folders(paths: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the run folders, each once, and a note for each that was named again."""
    found: dict[Path, Path] = {}
    notes = []
    for path in map(Path, paths):
        for folder in _within(path):
            if folder.resolve() in found:
                notes.append(f"{folder}: the same run as {found[folder.resolve()]}; counted once")
            else:
                found[folder.resolve()] = folder
    return list(found.values()), notes


def _within(path: Path) -> list[Path]:
    try:
        return [RunDir.open(path).path]
    except ConfigError:
        children = sorted(child for child in path.iterdir()) if path.is_dir() else []
        runs = [child for child in children if _is_run(child)]
        if not runs:
            raise
        return runs


def _is_run(path: Path) -> bool:
    try:
        RunDir.open(path)
    except ConfigError:
        return False
    return True


def _labels(folders: Sequence[Path]) -> list[str]:
    """Names of the folders; their paths where a name is not theirs alone."""
    names = Counter(RunDir(folder).name for folder in folders)
    return [
        RunDir(folder).name if names[RunDir(folder).name] == 1 else str(folder)
        for folder in folders
    ]


def _run_notes(read: RunTrials, folder: Path, *, kept: int, with_unfinished: bool) -> list[str]:
    notes = [f"run {read.label}: {remark}" for remark in read.remarks]
    if not read.trials:
        notes.append(f"run {read.label}: no search to count ({read.events} events)")
    words = _STATUS_WORDS.get(read.status)
    if words is not None:
        notes.append(f"run {read.label} {words.format(path=folder)}")
    open_ = sum(not trial.ended for trial in read.trials)
    if open_ and with_unfinished:
        notes.append(f"run {read.label}: {open_} search(es) have not ended: counted as they are")
    elif open_:
        notes.append(
            f"run {read.label}: {open_} of {kept + open_} search(es) have not ended: left out "
            "(--unfinished counts them)"
        )
    failed = [trial for trial in read.trials if trial.failure]
    if failed:
        notes.append(
            f"run {read.label}: {len(failed)} search(es) failed "
            f"({textwrap.shorten(failed[0].failure, MAX_FAILURE, placeholder=' …')}): counted by "
            "what they had found"
        )
    return notes


def _check_control(found: Study, control: str | None) -> None:
    if control is None:
        return
    arms = list(dict.fromkeys(trial.arm for trial in found.trials))
    if control not in arms:
        close = difflib.get_close_matches(control, arms, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(arms)}"
        raise ConfigError(f"--control {control}: no such arm; {hint}")
