"""The closing table of a run, and its JSON: what was found for each problem, and where it lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kopt.cli.nothing_found import NothingFound, nothing_found
from kopt.data.best import best_folders, rank_candidates
from kopt.data.fold import RunState
from kopt.data.results import ResultRow, result_rows
from kopt.data.rundir import RunDir
from kopt.evaluation import EvalJson, missing_baselines

LEFT_COLUMNS = 3
"""Columns of words; the others are numbers."""
MAX_TRIES = 5
"""Proposals under a table: those of the most problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSummary:
    """What a run found for one problem, over all its searches."""

    problem: str
    """The problem's name."""
    outcome: str
    """Of its best search; `failed` where every search failed without a correct candidate."""
    best: EvalJson | None
    candidates: int
    cached: int
    """Of them, those whose verdict was known before: nothing was run."""
    why: str
    """What kept it from being optimized, in a line; empty where it is."""
    tries: tuple[str, ...]
    """What to try then, a line each."""
    path: Path | None
    """The fastest candidate's file."""


def summarize(run: RunDir, state: RunState) -> list[ProblemSummary]:
    """Return a summary for each problem, in the order their searches started."""
    ranked, folders = rank_candidates(state), best_folders(run, state)
    rows: dict[str, list[ResultRow]] = {}
    for row in result_rows(state):
        rows.setdefault(row["problem"], []).append(row)
    found = []
    for problem, of_problem in rows.items():
        best = ranked[problem][0].evaluation if ranked.get(problem) else None
        searches = [
            (name, each) for name, each in state.searches.items() if each.started.problem == problem
        ]
        found.append(
            _summary(
                of_problem,
                best=best,
                path=folders[problem] / "rank1.py",
                nothing=nothing_found(searches, best=best, run=str(run.path)),
                failure=next(
                    (s.ended.reason for _, s in searches if s.ended and s.ended.failed), None
                ),
            )
        )
    return found


def summary_text(run: RunDir, summaries: Sequence[ProblemSummary]) -> str:
    """Return the closing table, the best files, and where the run lies; nothing is cut."""
    rows: list[tuple[str, ...]] = [
        ("problem", "outcome", "speedup", "time", "eager", "compile", "candidates")
    ]
    rows += [_cells(summary) for summary in summaries]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < LEFT_COLUMNS else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines += [f"{summary.problem}: {summary.why}" for summary in summaries if summary.why]
    lines += [
        f"{summary.problem}: no baseline {missing}"
        for summary in summaries
        if summary.best is not None
        for missing in missing_baselines(summary.best)
    ]
    cached = sum(summary.cached for summary in summaries)
    if cached:
        total = sum(summary.candidates for summary in summaries)
        lines.append(f"{cached} of {total} verdicts were known before; nothing was run for them")
    lines += _tries(summaries)
    lines.append("")
    lines += [f"{s.problem}: {s.path}" for s in summaries if s.path is not None]
    lines += [f"as a page: kopt report {run.path}", f"run folder: {run.path}"]
    return "\n".join(lines) + "\n"


def summary_json(
    run: RunDir, state: RunState, summaries: Sequence[ProblemSummary]
) -> dict[str, Any]:
    """Return what `kopt run --json` prints: the rows of results.parquet, and the best files."""
    return {
        "run": run.name,
        "path": str(run.path),
        "ended": state.ended is not None,
        "failed": sum(
            search.ended is not None and search.ended.failed for search in state.searches.values()
        ),
        "results": [dict(row) for row in result_rows(state)],
        "serving": run.serving(),
        "best": {s.problem: str(s.path) for s in summaries if s.path is not None},
        "nothing_found": {
            s.problem: {"why": s.why, "try": list(s.tries)} for s in summaries if s.why
        },
    }


def _summary(
    rows: Sequence[ResultRow],
    *,
    best: EvalJson | None,
    path: Path,
    nothing: NothingFound,
    failure: str | None,
) -> ProblemSummary:
    outcome: str = max(rows, key=lambda row: row["speedup"] or 0.0)["outcome"]
    is_won = outcome == "optimized"
    why = "" if is_won else nothing.why
    if failure is not None:
        outcome, why = ("failed", failure) if best is None else (outcome, failure)
    return ProblemSummary(
        problem=rows[0]["problem_name"],
        outcome=outcome,
        best=best,
        candidates=sum(row["candidates"] for row in rows),
        cached=sum(row["cached"] or 0 for row in rows),
        why=why,
        tries=() if is_won or failure is not None else nothing.tries,
        path=path if best is not None and path.is_file() else None,
    )


def _tries(summaries: Sequence[ProblemSummary]) -> list[str]:
    """What to try, each proposal once, with how many problems it is for."""
    counts = Counter(line for summary in summaries for line in summary.tries)
    return [
        f"  try {line}" + (f" ({count} problems)" if count > 1 else "")
        for line, count in counts.most_common(MAX_TRIES)
    ]


def _cells(summary: ProblemSummary) -> tuple[str, ...]:
    best = summary.best
    return (
        summary.problem,
        summary.outcome,
        "-" if best is None else _speedup(best),
        _us(best["time_us"] if best else None),
        _us(_baseline_us(best, "eager")),
        _us(_baseline_us(best, "compile")),
        str(summary.candidates),
    )


def _baseline_us(best: EvalJson | None, name: Literal["eager", "compile"]) -> float | None:
    """A baseline's time: what the race itself saw of the one that the speed-up is over."""
    if best is None:
        return None
    if best["baseline"] == name:
        return best["baseline_us"]
    return best["eager_us"] if name == "eager" else best["compile_us"]


def _speedup(best: EvalJson) -> str:
    low, high = best["speedup_ci"] or (0.0, 0.0)
    protocol = best.get("protocol") or "abba"
    by = "" if protocol == "abba" else f" by {protocol}"
    return f"{best['speedup'] or 0.0:.2f}x [{low:.2f}, {high:.2f}] over {best['baseline']}{by}"


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f} us"
