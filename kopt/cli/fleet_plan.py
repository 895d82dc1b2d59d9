"""`kopt run -m --plan`: the jobs of a multirun, and what they may take, before anything starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kopt.cli.output import write_json
from kopt.cli.plan import limit_lines, plan_rows, planned_prompts
from kopt.cli.prepared import Prepared, Refused, why_refused
from kopt.cli.progress import duration
from kopt.cli.rates import Rates, read_rates
from kopt.config import MODEL_KINDS
from kopt.ports import Usage

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """What one job may come to, at most: a search ends earlier when nothing is left to try."""

    job: int
    arm: str
    overrides: tuple[str, ...]
    problems: int
    seeds: int
    searches: int
    candidates: int
    device_s: float | None
    """Alone on the devices that the rates are of; None where nothing was ever measured."""
    guessed: int
    """Problems that were never measured: the mean pace stands for theirs."""
    prompts: int
    """That a model or a person answers; 0 where nobody is asked in words."""
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    """None, as both kinds of tokens, where a model is asked that no earlier run has asked."""


def print_fleet_plan(
    ready: Sequence[Prepared], refused: Sequence[Refused], *, as_json: bool
) -> None:
    """Tell what a multirun would do, on standard output."""
    rates = read_rates(Path(ready[0].config.out))
    plans = [job_plan(job, rates) for job in ready]
    if as_json:
        write_json(sys.stdout, fleet_plan_json(plans, refused, rates))
        return
    sys.stdout.write(fleet_plan_text(plans, refused, rates))
    for line in dict.fromkeys(line for job in ready for line in limit_lines(job.config.limits)):
        sys.stdout.write(f"{line}, over the jobs that have this limit\n")
    for note in dict.fromkeys(line for job in ready for line in job.config.notes):
        sys.stdout.write(f"note: {note}\n")


def job_plan(job: Prepared, rates: Rates) -> JobPlan:
    """Return what one job may come to.

    Args:
        job: that is ready.
        rates: of earlier runs.
    """
    config = job.config
    rows = plan_rows(config, job.problems, rates=rates)
    candidates = sum(row.candidates for row in rows)
    unknown = [row for row in rows if row.seconds is None]
    device_s = None
    if rates.mean_pace_s is not None:
        device_s = sum(row.seconds or 0.0 for row in rows)
        device_s += rates.mean_pace_s * sum(row.candidates for row in unknown)
    kind = config.programmer.kind
    asks = kind in MODEL_KINDS or kind == "mailbox" or "/" in kind
    usage: Usage | None = Usage()
    if kind in MODEL_KINDS or "/" in kind:
        usage = rates.usage.get(kind)
    return JobPlan(
        job=job.number,
        arm=config.arm_name,
        overrides=job.overrides,
        problems=len(rows),
        seeds=len(config.seed),
        searches=sum(row.searches for row in rows),
        candidates=candidates,
        device_s=device_s,
        guessed=len(unknown),
        prompts=planned_prompts(config, rows) if asks else 0,
        tokens_in=None if usage is None else usage.tokens_in * candidates,
        tokens_out=None if usage is None else usage.tokens_out * candidates,
        cost_usd=None if usage is None else usage.cost_usd * candidates,
    )


def fleet_plan_text(plans: Sequence[JobPlan], refused: Sequence[Refused], rates: Rates) -> str:
    """Return the plan for a person: a row for each job, the sum, and where the rates come from."""
    head = ("job", "arm", "problems", "seeds", "candidates", "device", "prompts", "tokens", "cost")
    rows = [head, *map(_cells, plans)]
    if len(plans) > 1:
        rows.append(_cells_of_all(plans))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.append(f"at most, each; rates: {rates.source}")
    guessed = max(plan.guessed for plan in plans)
    if guessed and rates.mean_pace_s is not None:
        lines.append(
            f"{guessed} problem(s) never measured: the mean of the others, "
            f"{rates.mean_pace_s:.2g} s a candidate, stands for theirs"
        )
    lines += [f"{numbers} cannot run: {line}" for numbers, line in why_refused(refused)]
    return "\n".join(lines) + "\n"


def fleet_plan_json(
    plans: Sequence[JobPlan], refused: Sequence[Refused], rates: Rates
) -> dict[str, Any]:
    """Return the plan as plain JSON values; a sum is null where one of its parts is unknown."""
    return {
        "jobs": [asdict(plan) for plan in plans],
        "searches": sum(plan.searches for plan in plans),
        "candidates": sum(plan.candidates for plan in plans),
        "device_s": _sum([plan.device_s for plan in plans]),
        "tokens_in": _sum([plan.tokens_in for plan in plans]),
        "tokens_out": _sum([plan.tokens_out for plan in plans]),
        "cost_usd": _sum([plan.cost_usd for plan in plans]),
        "rates": list(rates.runs),
        "refused": [{"job": each.number, "reasons": each.lines} for each in refused],
    }


def _cells(plan: JobPlan) -> tuple[str, ...]:
    return (
        str(plan.job),
        plan.arm,
        str(plan.problems),
        str(plan.seeds),
        f"{plan.candidates:,}",
        _device(plan.device_s),
        f"{plan.prompts:,}",
        _tokens(plan.tokens_in, plan.tokens_out),
        _usd(plan.cost_usd),
    )


def _cells_of_all(plans: Sequence[JobPlan]) -> tuple[str, ...]:
    return (
        "all",
        f"{len(plans)} job(s), {sum(plan.searches for plan in plans):,} search(es)",
        "",
        "",
        f"{sum(plan.candidates for plan in plans):,}",
        _device(_sum([plan.device_s for plan in plans])),
        f"{sum(plan.prompts for plan in plans):,}",
        _tokens(
            _sum([plan.tokens_in for plan in plans]), _sum([plan.tokens_out for plan in plans])
        ),
        _usd(_sum([plan.cost_usd for plan in plans])),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _device(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return duration(seconds) if seconds < HOUR_S else f"{seconds / HOUR_S:,.1f} GPU-h"


def _tokens(tokens_in: float | None, tokens_out: float | None) -> str:
    if tokens_in is None or tokens_out is None:
        return "unknown"
    return f"{tokens_in + tokens_out:,.0f}"


def _usd(cost_usd: float | None) -> str:
    return "unknown" if cost_usd is None else f"{cost_usd:,.2f} USD"
