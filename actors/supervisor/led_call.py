"""A first call on an input right after some on an input that is known: what it adds, by our clock.

A child that was handed an input was asleep. Each part of its work that threads share waits until
they are awake, which takes microseconds on a calm host and milliseconds on a busy one, or under a
real-time scheduler; a timed call, one of many, does not wait. Calls on a known input in the same
command take that upon themselves: what the next one adds is the call.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kopt.actors.child.tensor_spec import Shareable
from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.inputs import JudgedSet, close_all
from kopt.actors.supervisor.outputs import compare, output_bytes, poisoned
from kopt.actors.supervisor.reference import bind
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Trail

LEADS = 8
"""Calls on the known input: a scheduler takes some to give each thread a processor."""
MAX_BYTES = 64 << 20
"""Of their outputs together; one is made at any size."""


@dataclass(slots=True)
class Added:
    """Microseconds of both commands, each made several times."""

    with_us: list[float] = field(default_factory=list)
    """With the call on the new input."""
    without_us: list[float] = field(default_factory=list)

    @property
    def least_us(self) -> float:
        """What the call adds where the host disturbs least."""
        return min(self.with_us) - min(self.without_us)


def time_led_call(
    bench: Bench,
    session: Session,
    child: Child,
    judged: JudgedSet,
    *,
    number: int,
    added: Added,
    trail: Trail | None,
) -> None:
    """Time both commands once.

    The one with the new input comes first, so that the input is new then.

    Args:
        bench: whose ladder decides.
        session: of the problem, whose timed sets the child has bound.
        child: of the candidate or of the reference.
        judged: the new input, with the reference's outputs.
        number: under which it is bound, free before and after.
        added: takes what is found.
        trail: by which the last output is judged; None for the reference's child.

    Raises:
        Judged: that output is wrong.
        ChildFailed: the child fails.
    """
    known = session.timed()[0]
    leads = [known] * max(1, min(LEADS, MAX_BYTES // max(output_bytes(judged.outputs), 1)))
    with session.filled(known) as filled:
        sets = {known: filled, number: judged}
        for order, times_us in (([*leads, number], added.with_us), (leads, added.without_us)):
            groups = [poisoned(sets[each].outputs) for each in order]
            answer, took_us = _timed(
                child, sets, order, new=number, groups=groups, limit_s=session.reference.limit_s
            )
            times_us.append(took_us)
            if trail is not None:
                last = len(order) - 1
                judged_last = sets[order[last]]
                name = "first_calls"
                compare(bench, judged_last, answer, last, groups[last], name=name, trail=trail)
            close_all(each for group in groups for each in group)


def _timed(
    child: Child,
    sets: Mapping[int, JudgedSet],
    order: Sequence[int],
    *,
    new: int,
    groups: Sequence[Sequence[Shareable]],
    limit_s: float,
) -> tuple[dict[str, Any], float]:
    """Give a child a new input set and have it make calls; return (answer, microseconds).

    Raises:
        ChildFailed: it fails.
    """
    numbers = child.share([each for group in groups for each in group])
    rest = iter(numbers)
    into = [[next(rest) for _ in group] for group in groups]
    began_ns = time.perf_counter_ns()
    bind(child, sets[new], number=new, timeout_s=limit_s)
    seeds = [sets[each].seed for each in order]
    answer = child.ask("call", timeout_s=limit_s, sets=[*order], seeds=seeds, into=into)
    took_us = (time.perf_counter_ns() - began_ns) / 1e3
    child.ask("unmap", timeout_s=limit_s, numbers=numbers)
    child.ask("unbind", timeout_s=limit_s, numbers=[new])
    return answer, took_us
