"""The wins that a run claims, and whether a measurement upholds one. Reads files; measures nothing.

A win is what results call `optimized`: above 1.01, its interval above 1. Claims are what a person
finds in `best/`; what the journal ranks there and the folder lacks is a claim too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kopt.candidate import Candidate
from kopt.data.best import best_folders, rank_candidates
from kopt.data.fold import RunState, fold
from kopt.data.journal_files import JOURNAL_FOLDER, read_events
from kopt.data.problems.file_source import read_source
from kopt.data.results import OPTIMIZED_SPEEDUP
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, StoreError
from kopt.evaluation import EvalJson
from kopt.problem import Problem

SAME_SHARE = 0.05
"""A speed-up is upheld where it is found again to within this share."""

_RANK = re.compile(r"rank(\d+)\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Win:
    """A claimed win."""

    problem: Problem
    candidate: Candidate
    where: str
    """The file that claims it, from the run folder: `best/softmax/rank1.py`, or `journal`."""
    speedup: float
    speedup_ci: tuple[float, float]
    baseline: str
    device: str
    """That it was measured on."""
    protocol: str = "abba"
    """By which it was timed."""
    fault: str = ""
    """Why the claim is refused unmeasured; empty where it can be measured."""


def wins_of(run: RunDir, *, keep: int) -> list[Win]:
    """Return every win that a run claims, problem by problem, the fastest first.

    Args:
        run: a run folder.
        keep: ranks of each problem that the journal stands for (`keep_best`).

    Raises:
        StoreError: the journal, a problem or a file of `best/` is damaged or missing.
    """
    has_journal = (run.path / JOURNAL_FOLDER).is_dir()
    state = fold(read_events(run.path)) if has_journal else RunState()
    wins = list(_in_files(run))
    seen = {(win.problem.problem_id, win.candidate.candidate_id) for win in wins}
    wins += [
        win
        for win in _in_journal(run, state, keep=keep)
        if (win.problem.problem_id, win.candidate.candidate_id) not in seen
    ]
    return sorted(wins, key=lambda win: win.problem.name)


def is_win(record: Mapping[str, Any]) -> bool:
    """Return whether an evaluation is `optimized` (kopt.data.results)."""
    speedup, interval = record.get("speedup"), record.get("speedup_ci")
    return (
        record.get("kind") == "correct"
        and isinstance(speedup, int | float)
        and isinstance(interval, list | tuple)
        and len(interval) == 2
        and speedup > OPTIMIZED_SPEEDUP
        and interval[0] > 1.0
    )


def refusal(win: Win, found: EvalJson) -> str:
    """Return why a measurement does not uphold a win; empty where it does.

    It does where the candidate is correct, still surely faster than the baseline, as a win must
    be, and the intervals overlap, or the speed-up is within SAME_SHARE of the claim, or above it.
    """
    if found["kind"] != "correct":
        return f"{found['kind']}: {found['reason']}"
    speedup, interval = found["speedup"], found["speedup_ci"]
    if speedup is None or interval is None:
        return "it was not timed"
    protocol = found.get("protocol") or "abba"
    if protocol != win.protocol:
        return f"timed by {protocol}, claimed by {win.protocol}: their times do not compare"
    if interval[0] <= 1.0:
        low, high = interval
        return f"no faster than {found['baseline']} for sure: {speedup:.2f} [{low:.2f}, {high:.2f}]"
    if interval[1] >= win.speedup_ci[0] or speedup >= (1.0 - SAME_SHARE) * win.speedup:
        return ""
    return f"slower than claimed by {1.0 - speedup / win.speedup:.0%}"


def _in_files(run: RunDir) -> Iterator[Win]:
    for path in sorted(run.best_folder.glob("*/rank*.json"), key=_place):
        record = _record(path)
        if not is_win(record):
            continue
        where = str(path.with_suffix(".py").relative_to(run.path))
        source, fault = "", ""
        try:
            source = read_source(path.with_suffix(".py"))
        except ConfigError as error:
            fault = str(error)
        try:
            candidate = Candidate(source=source, language=record["language"])
            if not fault and candidate.candidate_id != record["candidate"]:
                fault = "the file is not what was judged: its text differs"
            yield Win(
                problem=run.problem(record["problem"]),
                candidate=candidate,
                where=where,
                speedup=float(record["speedup"]),
                speedup_ci=(float(record["speedup_ci"][0]), float(record["speedup_ci"][1])),
                baseline=str(record["baseline"]),
                device=str(record["device"]),
                protocol=str(record.get("protocol") or "abba"),
                fault=fault,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(str(path), f"not an evaluation: {error}") from error


def _in_journal(run: RunDir, state: RunState, *, keep: int) -> Iterator[Win]:
    folders = best_folders(run, state)
    for problem_id, ranked in rank_candidates(state).items():
        for number, entry in enumerate(ranked[:keep], start=1):
            if not is_win(entry.evaluation):
                continue
            record = entry.evaluation
            lacking = folders[problem_id].relative_to(run.path) / f"rank{number}.py"
            yield Win(
                problem=run.problem(problem_id),
                candidate=Candidate(
                    source=run.artefacts.get(entry.made.source), language=record["language"]
                ),
                where=f"journal (not in {lacking})",
                speedup=record["speedup"] or 0.0,
                speedup_ci=record["speedup_ci"] or (0.0, 0.0),
                baseline=record["baseline"] or "eager",
                device=record["device"],
                protocol=record.get("protocol") or "abba",
            )


def _place(path: Path) -> tuple[str, int]:
    match = _RANK.fullmatch(path.name)
    return path.parent.name, int(match[1]) if match else 0


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise StoreError(str(path), error.strerror or str(error)) from error
    except ValueError as error:
        raise StoreError(str(path), f"not JSON: {error}") from error
    if not isinstance(record, dict):
        raise StoreError(str(path), f"expected an object, found {type(record).__name__}")
    return record
