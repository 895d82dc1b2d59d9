"""Dead and idle operations: what watching the reference on several input sets says together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kopt.actors.lint.subject import Subject
from kopt.actors.lint.trivial import Material
from kopt.actors.lint.watched import TAIL
from kopt.actors.supervisor.settings import Bench
from kopt.data.lint import LintRemark
from kopt.errors import ProblemError
from kopt.problem import Problem

DEAD_SHARE = 0.05
"""Share of all elements read and written above which unused work makes a problem degenerate."""
LISTED = 4
SNIPPET = 60
"""Characters of a source line that are shown."""

Place = tuple[int, str]
"""Line of the problem's source, and the operation's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one watched call showed."""

    is_opaque: bool
    """Something wrote that torch does not dispatch: nothing is known of dead operations."""
    dead: dict[Place, tuple[int, int, float]]
    """Unused runs, all runs, their share of the elements."""
    idle: dict[Place, tuple[frozenset[int], int]]
    """Which runs changed nothing, and how many there were."""


def operation_remarks(
    bench: Bench, problem: Problem, material: Material, notes: list[str], *, secret: int
) -> Iterator[LintRemark]:
    """Yield remarks on dead and idle operations.

    Args:
        bench: where the watched reference's process is made.
        problem: whose reference it is.
        material: its input sets and weights.
        notes: what could not be looked at is added.
        secret: of the construction.

    Raises:
        WorkerLost: the zygote is gone.
    """
    try:
        seen = list(_watch(bench, problem, material, secret=secret))
    except ProblemError as error:
        notes.append(f"operations not watched: {error.why}")
        return
    if not seen:
        notes.append("operations not watched: the reference gives no report")
        return
    lines = problem.source.splitlines()
    if any(each.is_opaque for each in seen):
        notes.append("dead operations not looked for: a kernel that torch does not dispatch ran")
    else:
        yield from _dead(seen, lines)
    yield from _idle(seen, lines)


def _watch(bench: Bench, problem: Problem, material: Material, *, secret: int) -> Iterator[Seen]:
    """Yield what is seen on an own input set as constructed, then on each hidden one."""
    subject = Subject(bench, replace(problem, source=problem.source + TAIL), secret=secret)
    try:
        for judged in (material.own[0], *material.hidden):
            state = material.states[judged.state]
            subject.load(state)
            text = subject.word(judged, state=state)
            found = None if text is None else parsed(text)
            if found is not None:
                yield found
    finally:
        subject.end()


def parsed(text: str) -> Seen | None:
    """Return a report, which comes from where the reference's own code runs; None for no report."""
    try:
        report: dict[str, Any] = json.loads(text)
        return Seen(
            is_opaque=bool(report["opaque"]),
            dead={
                (int(line), str(name)): (int(unused), int(count), float(share))
                for line, name, unused, count, share in report["dead"]
            },
            idle={
                (int(line), str(name)): (frozenset(map(int, numbers)), int(count))
                for line, name, numbers, count in report["idle"]
            },
        )
    except (ValueError, KeyError, TypeError):
        return None


def _dead(seen: list[Seen], lines: list[str]) -> Iterator[LintRemark]:
    """Operations that are unused in every call."""
    first, *others = seen
    places = {
        place: found
        for place, found in first.dead.items()
        if all(place in other.dead for other in others)
    }
    if not places:
        return
    share = sum(found[2] for found in places.values())
    parts = [
        _at(place, lines) + _count(unused, count) for place, (unused, count, _) in places.items()
    ]
    yield LintRemark(
        tag="dead_op", line=f"never used: {_listed(parts)}", degenerate=share >= DEAD_SHARE
    )


def _idle(seen: list[Seen], lines: list[str]) -> Iterator[LintRemark]:
    """Operations that change nothing: on any inputs, and on the problem's own alone."""
    first, *others = seen
    always, own = [], []
    for place, (runs, count) in first.idle.items():
        everywhere = runs
        for other in others:
            everywhere = everywhere & other.idle.get(place, (frozenset[int](), 0))[0]
        if everywhere:
            always.append(_at(place, lines) + _count(len(everywhere), count))
        if runs - everywhere:
            own.append(_at(place, lines) + _count(len(runs - everywhere), count))
    parts = []
    if always:
        parts.append(f"changes nothing: {_listed(always)}")
    if own:
        parts.append(f"changes nothing as constructed, on its own inputs: {_listed(own)}")
    if parts:
        yield LintRemark(tag="no_op", line="; ".join(parts))


def _at(place: Place, lines: list[str]) -> str:
    line, name = place
    if not 0 < line <= len(lines):
        return name
    text = lines[line - 1].strip()
    shown = text if len(text) <= SNIPPET else f"{text[:SNIPPET]}…"
    return f"{name} in line {line} `{shown}`"


def _count(some: int, count: int) -> str:
    return "" if some == count else f" ({some} of {count})"


def _listed(parts: list[str]) -> str:
    shown = ", ".join(parts[:LISTED])
    return shown if len(parts) <= LISTED else f"{shown} and {len(parts) - LISTED} more"
