"""`kopt run --plan`: what a run would do, and what earlier runs say of how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kopt.actors.programmers.agents_config import AgentsConfig
from kopt.cli.progress import duration
from kopt.cli.rates import Rates, read_rates
from kopt.config import LimitsConfig, RunConfig
from kopt.ports import Usage
from kopt.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """What is planned for one problem."""

    problem: str
    searches: int
    candidates: int
    """At most: a search ends earlier when nothing is left to try."""
    seconds: float | None
    """At most, alone on the devices of the run it is taken from; None where never measured."""


def plan_rows(
    config: RunConfig, problems: Sequence[Problem], *, rates: Rates | None = None
) -> list[PlanRow]:
    """Return a row for each problem; seconds are candidates times the pace of earlier runs.

    Args:
        config: of the run.
        problems: resolved from it.
        rates: of earlier runs; None reads those below `out`.
    """
    paces = (rates or read_rates(Path(config.out))).pace_s
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
    return read_rates(out).pace_s


def known_usage(out: Path, *, programmer: str) -> Usage | None:
    """Return what a candidate of a programmer has cost on average; None where never measured."""
    return read_rates(out).usage.get(programmer)


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
    lines.append(_writing_text(config, rows))
    lines += limit_lines(config.limits)
    return "\n".join(lines) + "\n"


def limit_lines(limits: LimitsConfig) -> list[str]:
    """Return a line for each limit that is set."""
    stops = {
        "wall_s": limits.wall_s and duration(limits.wall_s),
        "candidates": limits.candidates and f"{limits.candidates} candidates",
        "tokens": limits.tokens and f"{limits.tokens:,} tokens",
        "cost_usd": limits.cost_usd and f"{limits.cost_usd:g} USD",
        "gpu_s": limits.gpu_s and f"{duration(limits.gpu_s)} of the devices",
    }
    return [f"limits.{name} stops it after {after}" for name, after in stops.items() if after]


def _writing_text(config: RunConfig, rows: Sequence[PlanRow]) -> str:
    """Return one line on what the programmer will be asked, and what that may cost."""
    kind = config.programmer.kind
    if kind in ("rewriter", "recorded"):
        return f"programmer {kind}: no model is asked, no tokens, no cost"
    prompts = planned_prompts(config, rows)
    what = "prompts" if config.pipeline.kind == "single" else "prompts of its roles"
    if kind == "mailbox":
        return f"programmer mailbox: at most {prompts} {what} to answer by hand"
    usage = planned_usage(config, rows)
    if usage is None:
        cost = "tokens and cost not known yet"
    else:
        cost = (
            f"at most {usage.tokens_in:,} tokens read, {usage.tokens_out:,} written, "
            f"{usage.cost_usd:.2f} USD, from earlier runs"
        )
    return f"programmer {kind}: at most {prompts} {what}; {cost}"


def planned_prompts(config: RunConfig, rows: Sequence[PlanRow]) -> int:
    """Return how many prompts are sent at most: one an expansion, or all calls of all roles."""
    if isinstance(config.pipeline, AgentsConfig):
        return config.pipeline.most_calls * sum(row.candidates for row in rows)
    return sum(row.searches for row in rows) * config.search.iterations


def planned_usage(config: RunConfig, rows: Sequence[PlanRow]) -> Usage | None:
    """Return what the candidates may cost at most, from earlier runs; None where none tells."""
    each = known_usage(Path(config.out), programmer=config.programmer.kind)
    if each is None:
        return None
    count = sum(row.candidates for row in rows)
    return Usage(
        tokens_in=each.tokens_in * count,
        tokens_out=each.tokens_out * count,
        cost_usd=each.cost_usd * count,
    )


def plan_json(config: RunConfig, rows: Sequence[PlanRow]) -> dict[str, Any]:
    """Return the plan as plain JSON values."""
    known = [row.seconds for row in rows if row.seconds is not None]
    usage = planned_usage(config, rows)
    return {
        "arm": config.arm_name,
        "searches": sum(row.searches for row in rows),
        "candidates": sum(row.candidates for row in rows),
        "device_s": sum(known) if len(known) == len(rows) else None,
        "tokens_in": usage and usage.tokens_in,
        "tokens_out": usage and usage.tokens_out,
        "cost_usd": usage and usage.cost_usd,
        "problems": [asdict(row) for row in rows],
    }
