"""What may be tried for a problem, in order: which rules, whether and how kernels are generated.

A candidate's plan stands in its source as a comment, and is read from there, so that the worker
needs no memory: slot i of a node is item i of the node's list, for every process alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from kopt.actors.rewriter.codegen import Schedule
from kopt.candidate import Language

Fold = Literal["call", "cached"]
MARKER = "# kopt rewriter plan: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to write a problem."""

    algebra: bool = True
    """Whether rules are applied at all."""
    without: tuple[str, ...] = ()
    """Rules left out."""
    schedule: Schedule | None = None
    """How generated kernels are written; None leaves every call to torch."""
    vendor: tuple[str, ...] = ()
    """Moves of `vendor`: other ways to call libraries."""
    compiled: bool = False
    """Whether torch.compile writes the kernels, from the graph as the rules leave it."""
    graphed: bool = False
    """Whether the calls are captured once as a CUDA graph and replayed."""
    fold: Fold = "call"
    """Whether what depends on weights alone is computed at every call, or once while they last."""

    def marker(self) -> str:
        """Return the comment that stands in the source."""
        data: dict[str, Any] = {"algebra": self.algebra, "without": list(self.without)}
        data["fold"], data["vendor"] = self.fold, list(self.vendor)
        data["compiled"], data["graphed"] = self.compiled, self.graphed
        data["schedule"] = None if self.schedule is None else self.schedule.to_json()
        return MARKER + json.dumps(data, sort_keys=True, separators=(",", ":"))


def plan_of(source: str) -> Plan | None:
    """Return the plan that a source was written by; None where it has none that is readable."""
    for line in source.splitlines():
        if not line.startswith(MARKER):
            continue
        try:
            data = json.loads(line.removeprefix(MARKER))
            schedule = data["schedule"]
            return Plan(
                algebra=bool(data["algebra"]),
                without=tuple(str(name) for name in data["without"]),
                schedule=None if schedule is None else Schedule(**schedule),
                vendor=tuple(str(name) for name in data.get("vendor", ())),
                compiled=bool(data.get("compiled")),
                graphed=bool(data.get("graphed")),
                fold="cached" if data.get("fold") == "cached" else "call",
            )
        except (ValueError, KeyError, TypeError):
            return None
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Ways to run a graph other than call by call, and what the graph is like."""

    compiler: bool = False
    """Whether torch.compile may take it."""
    graph: bool = False
    """Whether it can be replayed as a CUDA graph."""
    many_launches: bool = False
    """Whether its calls take less time than launching them."""
    convolutions: bool = False
    """Whether convolutions do most of the work."""


LIBRARY_RUNS = Runs()
"""Call by call only."""


def without_marker(source: str) -> str:
    """Return a source without its plan: two plans may come to the same code."""
    return "\n".join(line for line in source.splitlines() if not line.startswith(MARKER))


def neighbour_plans(
    parent: Plan,
    *,
    schedules: list[Schedule],
    applied: tuple[str, ...],
    vendor: tuple[str, ...] = (),
    runs: Runs = LIBRARY_RUNS,
) -> Iterator[Plan]:
    """Yield plans one change away from a parent that is correct."""
    if runs.graph and runs.many_launches:
        yield replace(parent, graphed=not parent.graphed)
    if parent.compiled:
        yield replace(parent, compiled=False, schedule=schedules[0] if schedules else None)
    elif parent.schedule is None:
        for schedule in schedules:
            yield replace(parent, schedule=schedule)
    else:
        for schedule in schedules[1:]:
            yield replace(parent, schedule=_moved(parent.schedule, schedules[0], schedule))
        yield replace(parent, schedule=None)
    if parent.algebra:
        for name in applied:
            if name not in parent.without:
                yield replace(parent, without=tuple(sorted((*parent.without, name))))
    for name in parent.without:
        yield replace(parent, without=tuple(n for n in parent.without if n != name))
    for name in vendor:
        others = tuple(n for n in parent.vendor if n != name)
        added = others if name in parent.vendor else tuple(sorted((*others, name)))
        yield replace(parent, vendor=added)
    if runs.compiler and not parent.compiled:
        yield replace(parent, compiled=True, schedule=None)
    if runs.graph and not runs.many_launches:
        yield replace(parent, graphed=not parent.graphed)


def safer_plans(
    parent: Plan, *, schedules: list[Schedule], applied: tuple[str, ...]
) -> Iterator[Plan]:
    """Yield plans with less that can go wrong than a parent that failed."""
    if parent.graphed:
        yield replace(parent, graphed=False)
    if parent.compiled:
        yield replace(parent, compiled=False, graphed=False)
    if parent.vendor:
        yield replace(parent, vendor=())
    if parent.schedule is not None:
        for schedule in schedules[:1]:
            yield replace(parent, schedule=schedule)
        yield replace(parent, schedule=None)
    if parent.algebra:
        for name in applied:
            if name not in parent.without:
                yield replace(parent, without=tuple(sorted((*parent.without, name))))
        yield Plan(algebra=False, schedule=parent.schedule)
        if parent.schedule is not None:
            for name in applied:
                if name not in parent.without:
                    without = tuple(sorted((*parent.without, name)))
                    yield replace(parent, without=without, schedule=None)
    yield Plan(algebra=False)


def _moved(start: Schedule, origin: Schedule, goal: Schedule) -> Schedule:
    """Return start with the change that leads from origin to goal."""
    changes = {
        field.name: getattr(goal, field.name)
        for field in fields(Schedule)
        if getattr(goal, field.name) != getattr(origin, field.name)
    }
    return replace(start, **changes)


def language_of(kernel_languages: set[str]) -> Language:
    """Return what a candidate's kernels are written in."""
    if "triton" in kernel_languages:
        return "triton"
    return "cpp" if "cpp" in kernel_languages else "torch"
