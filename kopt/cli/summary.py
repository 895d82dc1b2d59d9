"""The closing table of a run, and its JSON: what was found for each problem, and where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kopt.data.best import best_folders, rank_candidates
from kopt.data.fold import RunState
from kopt.data.results import ResultRow, result_rows
from kopt.data.rundir import RunDir
from kopt.evaluation import EvalJson, missing_baselines

LEFT_COLUMNS = 3
"""Columns of words; the others are numbers."""


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
    """What kept it from being optimized, in a word or a line; empty where it is."""
    path: Path | None
    """The fastest candidate's file."""


def summarize(run: RunDir, state: RunState) -> list[ProblemSummary]:
    """Return a summary for each problem, in the order their searches started."""
    ranked, folders = rank_candidates(state), best_folders(run, state)
    rows: dict[str, list[ResultRow]] = {}
    for row in result_rows(state):
        rows.setdefault(row["problem"], []).append(row)
    failed = {
        search.started.problem: search.ended.reason
        for search in state.searches.values()
        if search.ended is not None and search.ended.failed
    }
    return [
        _summary(
            of_problem,
            best=ranked[problem][0].evaluation if ranked.get(problem) else None,
            path=folders[problem] / "rank1.py",
            failure=failed.get(problem),
        )
        for problem, of_problem in rows.items()
    ]


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
    lines.append("")
    lines += [f"{s.problem}: {s.path}" for s in summaries if s.path is not None]
    lines.append(f"run folder: {run.path}")
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
    }


def _summary(
    rows: Sequence[ResultRow], *, best: EvalJson | None, path: Path, failure: str | None
) -> ProblemSummary:
    leading = max(rows, key=lambda row: row["speedup"] or 0.0)
    outcome: str = leading["outcome"]
    why = "" if outcome == "optimized" else (leading["root_cause"] or "")
    if failure is not None:
        outcome, why = ("failed", failure) if best is None else (outcome, failure)
    elif best is not None:
        why = ""
    return ProblemSummary(
        problem=rows[0]["problem_name"],
        outcome=outcome,
        best=best,
        candidates=sum(row["candidates"] for row in rows),
        cached=sum(row["cached"] or 0 for row in rows),
        why=why,
        path=path if best is not None and path.is_file() else None,
    )


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
