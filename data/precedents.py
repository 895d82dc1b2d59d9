"""Precedents in earlier runs: the most similar past problem, and the lineage of its fastest kernel.

Results and problems of all runs in a folder are read at once, when it is opened; a journal only
where a precedent comes from, and of that the one search. What is damaged or unfinished is passed
over: a precedent is a help.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kopt.data.corpus.near_duplicates import Signature, signature, similarity, source_digest
from kopt.data.corpus.raw_events import events_of
from kopt.data.journal_files import JOURNAL_FOLDER
from kopt.data.results import ResultRow, read_results
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, StoreError
from kopt.memory.precedent import MAX_STEPS, PastStep, Precedent, is_alike
from kopt.problem import Problem
from kopt.prompts.excerpts import middle_out

MAX_SOURCE = 3_000
"""Characters that are kept of a precedent's source."""
MAX_STRATEGY = 300
RESULTS_FILE = "results.parquet"
MAX_RUNS = 500
"""Runs of a folder that are looked at, those changed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """One problem that was made faster."""

    run: RunDir
    row: ResultRow
    problem: Problem
    signature: Signature
    digest: str
    """Of the reference's tokens."""


class PastRuns:
    """Runs of a folder, as precedents. Reads files only when it is made and when it is asked."""

    def __init__(self, folder: Path, *, own: Path) -> None:
        """Read what the runs of a folder reached.

        Args:
            folder: of run folders.
            own: the run that asks; it is no precedent of its own.

        Raises:
            ConfigError: there is no such folder.
        """
        if not folder.is_dir():
            raise ConfigError(f"{folder}: expected a folder of runs, found none")
        self._past = list(_of_folder(folder, own=own.resolve()))
        self._read: dict[int, Precedent | None] = {}

    def find(self, problem: Problem, *, on_cpu: bool) -> Precedent | None:
        """Return the precedent of a problem; None where nothing alike was made faster.

        Args:
            problem: that is about to be searched.
            on_cpu: what was found on a device of the other kind is no precedent.
        """
        mine, digest = signature(problem.source), source_digest(problem.source)
        found: list[tuple[bool, float, float, int]] = []
        for place, past in enumerate(self._past):
            if past.digest == digest or (past.row["device"] == "cpu") != on_cpu:
                continue
            is_same_family = bool(problem.family) and past.problem.family == problem.family
            alike = similarity(mine, past.signature)
            if is_alike(alike, is_same_family=is_same_family):
                found.append((is_same_family, alike, past.row["speedup_lo"] or 0.0, -place))
        for _, alike, _, place in sorted(found, reverse=True):
            precedent = self._precedent(-place)
            if precedent is not None:
                return replace(precedent, similarity=round(alike, 3))
        return None

    def _precedent(self, place: int) -> Precedent | None:
        if place not in self._read:
            try:
                self._read[place] = _precedent(self._past[place])
            except (StoreError, UnicodeDecodeError, ValueError, KeyError, TypeError):
                self._read[place] = None
        return self._read[place]


def _of_folder(folder: Path, *, own: Path) -> Iterator[_Past]:
    """Give the problems that runs of a folder made faster, the fastest row of each run."""
    paths = [path for path in folder.iterdir() if (path / RESULTS_FILE).is_file()]
    paths.sort(key=lambda path: (-(path / RESULTS_FILE).stat().st_mtime_ns, path.name))
    for path in paths[:MAX_RUNS]:
        if path.resolve() == own:
            continue
        run = RunDir(path)
        best: dict[str, ResultRow] = {}
        try:
            rows = read_results(run.results_path)
        except StoreError:
            continue
        for row in rows:
            low = row["speedup_lo"]
            if low is None or low <= 1.0 or row["degenerate"] or row["best_candidate"] is None:
                continue
            known = best.get(row["problem"])
            if known is None or low > (known["speedup_lo"] or 0.0):
                best[row["problem"]] = row
        for row in best.values():
            try:
                problem = run.problem(row["problem"])
            except StoreError:
                continue
            yield _Past(
                run=run,
                row=row,
                problem=problem,
                signature=signature(problem.source),
                digest=source_digest(problem.source),
            )


def _precedent(past: _Past) -> Precedent | None:
    """Read the lineage of a search's fastest candidate; None where the journal has it not."""
    row = past.row
    search = f"{row['problem_name']}/{row['arm']}/{row['seed']}"
    made: dict[str, dict[str, Any]] = {}
    verdicts: dict[str, dict[str, Any]] = {}
    for event in events_of(past.run.path / JOURNAL_FOLDER, search):
        if event["kind"] == "candidate_made":
            made.setdefault(event["candidate"], event)
        elif event["kind"] == "verdict":
            verdicts.setdefault(event["candidate"], json.loads(event["eval"]))
    lineage: list[str] = []
    candidate = row["best_candidate"]
    while candidate in made and candidate not in lineage:
        lineage.insert(0, candidate)
        candidate = made[candidate]["parent"]
    if not lineage:
        return None
    best = made[lineage[-1]]
    return Precedent(
        problem=row["problem"],
        family=past.problem.family,
        similarity=0.0,
        language=best["language"],
        speedup=row["speedup"] or 1.0,
        steps=tuple(_step(made[each], verdicts.get(each, {})) for each in lineage[-MAX_STEPS:]),
        older=max(0, len(lineage) - MAX_STEPS),
        source=middle_out(past.run.artefacts.get(best["source"]), max_characters=MAX_SOURCE),
    )


def _step(made: Mapping[str, Any], verdict: Mapping[str, Any]) -> PastStep:
    return PastStep(
        strategy=" ".join(made["strategy"].split())[:MAX_STRATEGY],
        kind=verdict.get("kind") or "",
        speedup=verdict.get("speedup"),
    )
