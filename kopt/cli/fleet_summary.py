"""The closing table of a multirun and its JSON: what became of each job, and which failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kopt.cli.job import JobOutcome
from kopt.cli.prepared import Refused, why_refused
from kopt.cli.summary import summarize, summary_json
from kopt.data.results import ResultRow, result_rows

LEFT_COLUMNS = 3
"""Columns of words; the others are numbers."""


def mean_speedup(outcome: JobOutcome) -> float:
    """Return the geometric mean of a job's searches' best speed-ups; one without counts as 1."""
    return _mean(result_rows(outcome.state))


def fleet_text(
    labels: Sequence[str],
    outcomes: Sequence[JobOutcome],
    refused: Sequence[Refused],
) -> str:
    """Return the closing table, and a line for each job that failed.

    Args:
        labels: of the jobs.
        outcomes: of the jobs, likewise.
        refused: jobs that could not run.
    """
    rows: list[tuple[str, ...]] = [
        ("job", "arm", "problems", "seeds", "optimized", "geomean", "candidates", "cached")
    ]
    rows += [_cells(label, outcome) for label, outcome in zip(labels, outcomes, strict=True)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < LEFT_COLUMNS else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    for label, outcome in zip(labels, outcomes, strict=True):
        lines += [f"job {label} failed: {line}" for line in failures(outcome)]
    lines += given_up(outcomes)
    ended_by = Counter(reason for outcome in outcomes for reason in outcome.ended_by)
    lines += [f"{reason} ended searches of {count} job(s)" for reason, count in ended_by.items()]
    lines += [f"{numbers} did not run: {line}" for numbers, line in why_refused(refused)]
    return "\n".join(lines) + "\n"


def fleet_json(
    whole: Path,
    labels: Sequence[str],
    outcomes: Sequence[JobOutcome],
    refused: Sequence[Refused],
) -> dict[str, Any]:
    """Return what `kopt run -m --json` prints: each job as `kopt run --json` does, and who failed.

    Args:
        whole: the multirun's folder.
        labels: of the jobs.
        outcomes: of the jobs, likewise.
        refused: jobs that could not run.
    """
    jobs = []
    for label, outcome in zip(labels, outcomes, strict=True):
        run = outcome.job.run_dir
        jobs.append(
            {
                "job": label,
                "arm": outcome.job.config.arm_name,
                "error": None if outcome.error is None else str(outcome.error),
                "ended_by": outcome.ended_by,
                "awaiting": outcome.awaiting,
                "geomean": mean_speedup(outcome),
                **summary_json(run, outcome.state, summarize(run, outcome.state)),
            }
        )
    return {
        "path": str(whole),
        "jobs": jobs,
        "quarantined": given_up(outcomes),
        "failed": [label for label, each in zip(labels, outcomes, strict=True) if failures(each)],
        "refused": [
            {"job": str(each.number), "overrides": each.overrides, "reasons": each.lines}
            for each in refused
        ],
    }


def failures(outcome: JobOutcome) -> list[str]:
    """Return a line for each thing that failed in a job: what ended it, and its searches."""
    ends = [(name, search.ended) for name, search in outcome.state.searches.items()]
    lines = [] if outcome.error is None else [str(outcome.error) or repr(outcome.error)]
    return lines + [f"{name}: {end.reason}" for name, end in ends if end and end.failed]


def given_up(outcomes: Sequence[JobOutcome]) -> list[str]:
    """Return a line for each device that was given up, once for all jobs that it worked for."""
    events = [event for outcome in outcomes for event in outcome.state.quarantined]
    return [
        f"{event.device_name} ({event.device}) of {event.host} was given up: {event.reason}"
        for event in dict.fromkeys(events)
    ]


def _cells(label: str, outcome: JobOutcome) -> tuple[str, ...]:
    rows = result_rows(outcome.state)
    names = list(dict.fromkeys(problem.name for problem in outcome.job.problems))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        label,
        outcome.job.config.arm_name,
        names[0] + more,
        _seeds(outcome.job.config.seed),
        f"{sum(row['outcome'] == 'optimized' for row in rows)} of {len(rows)}",
        f"{_mean(rows):.2f}x",
        str(sum(row["candidates"] for row in rows)),
        str(sum(row["cached"] or 0 for row in rows)),
    )


def _seeds(seeds: Sequence[int]) -> str:
    """`0`, `0,2`, or the first and the last of more."""
    if len(seeds) > 2:
        return f"{seeds[0]}…{seeds[-1]}"
    return ",".join(map(str, seeds))


def _mean(rows: Sequence[ResultRow]) -> float:
    logs = [math.log(row["speedup"] or 1.0) for row in rows]
    return math.exp(sum(logs) / len(logs)) if logs else 1.0
