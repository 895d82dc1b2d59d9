"""Rates of earlier runs: device seconds and tokens a candidate, and which runs they come from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kopt.errors import StoreError
from kopt.ports import Usage

if TYPE_CHECKING:
    from kopt.data.results import ResultRow

MAX_RUNS_READ = 20
"""Newest run folders that rates are taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a candidate has taken so far."""

    pace_s: dict[str, float] = field(default_factory=dict)
    """Device seconds a candidate, by problem id; only problems that were measured."""
    mean_pace_s: float | None = None
    """The same over all of them."""
    usage: dict[str, Usage] = field(default_factory=dict)
    """What a candidate of a kind of programmer has cost on average; only those that cost."""
    runs: tuple[str, ...] = ()
    """The runs' folders, the newest last."""

    @property
    def source(self) -> str:
        """Where the rates come from, in a few words."""
        if not self.runs:
            return "no earlier run"
        more = f"{self.runs[0]} to {self.runs[-1]}" if len(self.runs) > 1 else self.runs[0]
        return f"{len(self.runs)} earlier run(s), {more}"


def read_rates(out: Path) -> Rates:
    """Return the rates of the newest runs below a folder, jobs of multiruns included."""
    device: dict[str, tuple[float, int]] = {}
    paid: dict[str, list[ResultRow]] = {}
    runs = []
    for folder, rows in _earlier(out):
        runs.append(str(folder))
        for row in rows:
            if not row["candidates"]:
                continue
            seconds, count = device.get(row["problem"], (0.0, 0))
            device[row["problem"]] = seconds + row["gpu_s"], count + row["candidates"]
            if row["programmer"] and row["tokens_out"]:
                paid.setdefault(row["programmer"], []).append(row)
    known = {problem: each for problem, each in device.items() if each[0] > 0}
    return Rates(
        pace_s={problem: seconds / count for problem, (seconds, count) in known.items()},
        mean_pace_s=sum(seconds for seconds, _ in known.values())
        / sum(count for _, count in known.values())
        if known
        else None,
        usage={kind: _mean_usage(rows) for kind, rows in paid.items()},
        runs=tuple(runs),
    )


def _mean_usage(rows: list[ResultRow]) -> Usage:
    count = sum(row["candidates"] for row in rows)
    return Usage(
        tokens_in=round(sum(row["tokens_in"] for row in rows) / count),
        tokens_out=round(sum(row["tokens_out"] for row in rows) / count),
        cost_usd=sum(row["cost_usd"] for row in rows) / count,
    )


def _earlier(out: Path) -> Iterator[tuple[Path, list[ResultRow]]]:
    from kopt.data.results import read_results

    found = [*out.glob("*/results.parquet"), *out.glob("*/*/results.parquet")]
    for path in sorted(found, key=lambda path: path.stat().st_mtime)[-MAX_RUNS_READ:]:
        with suppress(StoreError):  # an estimate does without a damaged file
            yield path.parent, read_results(path)
