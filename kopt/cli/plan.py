"""`kopt run --plan`: what a run would do, and what earlier runs say of how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopt.cli.progress import duration
from kopt.config import RunConfig
from kopt.errors import StoreError
from kopt.problem import Problem

if TYPE_CHECKING:
    from kopt.data.results import ResultRow

MAX_RUNS_READ = 20
"""Newest run folders that paces are taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """What is planned for one problem."""

    problem: str
    searches: int
    candidates: int
    """At most: a search ends earlier when nothing is left to try."""
    seconds: float | None
    """At most, alone on the devices of the run it is taken from; None where never measured."""


def plan_rows(config: RunConfig, problems: Sequence[Problem]) -> list[PlanRow]:
    """Return a row for each problem; seconds are candidates times the pace of earlier runs."""
    paces = known_paces(Path(config.out))
    searches = len(config.seed)
    candidates = searches * config.search.budget
    rows = []
    for problem in problems:
        pace_s = paces.get(problem.problem_id)
        rows.append(
            PlanRow(
                problem=problem.name,
                searches=searches,
                candidates=candidates,
                seconds=None if pace_s is None else candidates * pace_s,
            )
        )
    return rows


def known_paces(out: Path) -> dict[str, float]:
    """Return device seconds a candidate, by problem id, from the newest runs below a folder."""
    from kopt.data.results import read_results

    spent: dict[str, tuple[float, int]] = {}
    files = sorted(out.glob("*/results.parquet"), key=lambda path: path.stat().st_mtime)
    for path in files[-MAX_RUNS_READ:]:
        try:
            rows = read_results(path)
        except StoreError:
            continue  # an estimate does without a damaged file
        for row in rows:
            if row["candidates"]:
                spent[row["problem"]] = _add(spent.get(row["problem"], (0.0, 0)), row)
    return {problem: seconds / count for problem, (seconds, count) in spent.items() if seconds > 0}


def _add(known: tuple[float, int], row: ResultRow) -> tuple[float, int]:
    return known[0] + row["gpu_s"], known[1] + row["candidates"]


def plan_text(config: RunConfig, rows: Sequence[PlanRow]) -> str:
    """Return the plan for a person."""
    width = max(len(row.problem) for row in rows)
    lines = [
        f"{row.problem:<{width}}  {row.searches} search(es), at most {row.candidates} candidates, "
        + ("time not known yet" if row.seconds is None else f"at most {duration(row.seconds)}")
        for row in rows
    ]
    known = [row.seconds for row in rows if row.seconds is not None]
    lines.append(
        f"in all: {len(rows)} problem(s) x {len(config.seed)} seed(s) = "
        f"{sum(row.searches for row in rows)} search(es), "
        f"at most {sum(row.candidates for row in rows)} candidates"
    )
    if known:
        without = len(rows) - len(known)
        more = f", and {without} problem(s) never measured" if without else ""
        lines.append(f"device time, from earlier runs: at most {duration(sum(known))}{more}")
    limits = config.limits
    if limits.wall_s is not None:
        lines.append(f"limits.wall_s stops it after {duration(limits.wall_s)}")
    if limits.candidates is not None:
        lines.append(f"limits.candidates stops it after {limits.candidates} candidates")
    if config.programmer.kind == "rewriter":
        lines.append("programmer rewriter: no model, no tokens, no cost")
    return "\n".join(lines) + "\n"


def plan_json(config: RunConfig, rows: Sequence[PlanRow]) -> dict[str, Any]:
    """Return the plan as plain JSON values."""
    known = [row.seconds for row in rows if row.seconds is not None]
    return {
        "arm": config.arm_name,
        "searches": sum(row.searches for row in rows),
        "candidates": sum(row.candidates for row in rows),
        "device_s": sum(known) if len(known) == len(rows) else None,
        "problems": [asdict(row) for row in rows],
    }
