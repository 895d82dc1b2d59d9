"""The rows of bench_rewriter.py: what is kept of a problem, the CSV, the table and the means."""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from bench_rewriter_judge import Tried

from kopt.actors.rewriter.plan import plan_of
from kopt.ports import Attempt
from kopt.problem import Problem
from kopt.verdict import Correct


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One problem. Times are of one call, in microseconds."""

    problem: str
    key: str
    """Problem id."""
    ladder: str
    kind: str
    """Verdict of the best candidate; `none` where none was written, or the first one's verdict
    where none is correct."""
    over_eager: float
    over_compile: float
    """NaN where compile was not measured."""
    speedup: float
    """Over the faster baseline."""
    low: float
    high: float
    plain: float
    """Speed-up of the best candidate without products of three tf32 products each."""
    time_us: float
    eager_us: float
    compile_us: float
    max_autotune_us: float
    """NaN where it was not measured."""
    sol_share: float
    """Speed of light ÷ time; NaN where unknown."""
    rules: str
    fold: str
    """Whether weights are folded at every call or once; empty where none is folded."""
    language: str
    way: str
    """How the best one gets its time: own products, a compiler, a CUDA graph, memory formats."""
    plan: str
    tried: int
    correct: int
    capture_ms: float
    propose_ms: float
    """Longest of all requests but the first."""
    degenerate: str
    wall_s: float
    note: str

    def line(self) -> str:
        """Return it as a line of the table."""
        return (
            f"{self.problem:<42}{self.over_eager:>8.2f}{self.over_compile:>8.2f}"
            f"  {self.speedup:.2f} [{self.low:.2f}, {self.high:.2f}]{self.time_us:>11.1f}"
            f"{self.eager_us:>11.1f}{self.compile_us:>11.1f} {self.correct}/{self.tried}"
            f"{self.capture_ms:>7.0f}{self.propose_ms:>6.0f}  {self.wall_s:.0f} s {self.kind} "
            f"{self.fold} {self.way} {self.rules} {self.note}"
            f"{' DEGENERATE' if self.degenerate else ''}"
        )


def row_of(problem: Problem, tried: Tried, *, ladder: str) -> Row:
    """Return what is kept of a problem."""
    nan = math.nan
    best = tried.best()
    told: dict[str, Any] = dict.fromkeys(
        ("time_us", "eager_us", "compile_us", "max_autotune_us", "sol_share"), nan
    )
    told |= dict.fromkeys(("over_eager", "over_compile", "speedup", "low", "high", "plain"), 1.0)
    told |= {"rules": "", "fold": "", "language": "", "way": "", "plan": ""}
    kind = tried.attempts[0].evaluation.verdict.reason if tried.attempts else "none"
    degenerate = problem.degenerate
    if best is not None:
        verdict = best.evaluation.verdict
        assert isinstance(verdict, Correct)
        timing = verdict.timing
        kind = "correct"
        times = {"eager": timing.eager_us, "compile": timing.compile_us or nan}
        against = times.get(timing.baseline, nan)
        source = best.candidate.source
        plain = tried.best(plain=True)
        told = {
            "time_us": timing.time_us,
            "eager_us": timing.eager_us,
            "compile_us": times["compile"],
            "max_autotune_us": timing.max_autotune_us or nan,
            "sol_share": nan if timing.sol_share is None else timing.sol_share,
            "over_eager": timing.speedup * times["eager"] / against,
            "over_compile": timing.speedup * times["compile"] / against,
            "speedup": timing.speedup,
            "low": timing.speedup_ci[0],
            "high": timing.speedup_ci[1],
            "plain": 1.0 if plain is None else _speedup(plain),
            "rules": _rules(source),
            "way": _way(source),
            "fold": _fold(source),
            "language": best.candidate.language,
            "plan": str(plan_of(source)),
        }
        if best.evaluation.degenerate and not degenerate:
            degenerate = "lint"
    later_ms = tried.propose_ms[1:] or [nan]
    return Row(
        problem=problem.name,
        key=problem.problem_id,
        ladder=ladder,
        kind=kind.replace("\n", " ")[:200],
        tried=len(tried.attempts),
        correct=sum(isinstance(a.evaluation.verdict, Correct) for a in tried.attempts),
        capture_ms=tried.propose_ms[0],
        propose_ms=max(later_ms),
        degenerate=degenerate,
        wall_s=tried.wall_s,
        note=tried.note,
        **told,
    )


def _speedup(attempt: Attempt) -> float:
    assert isinstance(attempt.evaluation.verdict, Correct)
    return attempt.evaluation.verdict.timing.speedup


def _way(source: str) -> str:
    plan = plan_of(source)
    if plan is None:
        return ""
    ways = [*plan.vendor]
    ways += ["compiler"] * plan.compiled + ["graph"] * plan.graphed
    if plan.schedule is not None and "tf32" in source:
        ways.append("products")
    return " ".join(ways)


def _rules(source: str) -> str:
    lines = source.split('"""')[1].splitlines()
    return " ".join(line.split(":")[0].removeprefix("* ") for line in lines if line[:2] == "* ")


def _fold(source: str) -> str:
    lines = [line.strip() for line in source.splitlines()]
    if any(line.startswith("Weights are folded once") for line in lines):
        return "cached"
    return (
        "call" if any(line.startswith("Weights are folded at every call") for line in lines) else ""
    )


def read(path: Path) -> list[Row]:
    """Return the rows of an earlier run; none where there is no file."""
    if not path.exists():
        return []
    kinds = {"str": str, "float": float, "int": int}
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(**{field.name: kinds[str(field.type)](line[field.name]) for field in fields(Row)})
            for line in csv.DictReader(file)
        ]


def append(path: Path, row: Row) -> None:
    """Add a row to the file."""
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        if is_new:
            writer.writeheader()
        writer.writerow(asdict(row))


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the means and extremes over rows, degenerate ones apart."""
    counted = [row for row in rows if not row.degenerate]
    proposed = [row.propose_ms for row in rows if math.isfinite(row.propose_ms)]
    return {
        "rows": [asdict(row) for row in rows],
        "problems": len(counted),
        "degenerate": [row.problem for row in rows if row.degenerate],
        "without_candidate": [row.problem for row in counted if row.kind != "correct"],
        "below_097": [row.problem for row in counted if row.speedup < 0.97],
        "propose_ms_max": max(proposed, default=math.nan),
        "propose_ms_median": statistics.median(proposed) if proposed else math.nan,
        "geomean_max_autotune": _geomean(
            row.max_autotune_us / row.time_us for row in counted if row.kind == "correct"
        ),
        "geomean_best": _geomean(row.speedup for row in counted),
        "geomean_without_own_products": _geomean(row.plain for row in counted),
        "geomean_eager": _geomean(row.over_eager for row in counted),
        "geomean_compile": _geomean(row.over_compile for row in counted),
    }


def _geomean(ratios: Iterable[float]) -> float:
    known = [ratio for ratio in ratios if math.isfinite(ratio) and ratio > 0]
    return math.exp(statistics.fmean(map(math.log, known))) if known else math.nan


def finite(value: Any) -> Any:  # noqa: ANN401 - plain data
    """Return plain data with null for numbers that JSON has not."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def report(rows: Sequence[Row], result: dict[str, Any]) -> None:
    """Print the table."""
    print(
        f"{'problem':<42}{'eager':>8}{'compile':>8}  over the faster{'time_us':>11}"
        f"{'eager_us':>11}{'compile_us':>11} right  first  next ms",
        file=sys.stderr,
    )
    for row in sorted(rows, key=lambda row: row.problem):
        print(row.line(), file=sys.stderr)
    print(
        f"{result['problems']} problems on {result['device_name']}: geometric mean "
        f"{result['geomean_eager']:.2f} over eager, {result['geomean_compile']:.2f} over compile, "
        f"{result['geomean_best']:.2f} over the faster; next candidate in "
        f"{result['propose_ms_median']:.0f} ms, {result['propose_ms_max']:.0f} ms at most",
        file=sys.stderr,
    )
