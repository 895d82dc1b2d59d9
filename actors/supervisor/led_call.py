"""A first call on an input right after some on an input that is known: what it adds, by our clock.

A child that was handed an input was asleep. Each part of its work that threads share waits until
they are awake, which takes microseconds on a calm host and milliseconds on a busy one, or under a
real-time scheduler; a timed call, one of many, does not wait. Calls on a known input in the same
command take that upon themselves: what the next one adds is the call.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.inputs import JudgedSet
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
    sets = {known: session.sets[known], number: judged}
    size = output_bytes(sets[known].outputs)
    leads = [known] * max(1, min(LEADS, MAX_BYTES // max(size, 1)))
    for order, times_us in (([*leads, number], added.with_us), (leads, added.without_us)):
        limit_s = session.reference.limit_s
        groups = [poisoned(sets[each].outputs) for each in order]
        numbers = child.share([each for group in groups for each in group])
        rest = iter(numbers)
        into = [[next(rest) for _ in group] for group in groups]
        began_ns = time.perf_counter_ns()
        bind(child, judged, number=number, timeout_s=limit_s)
        seeds = [sets[each].seed for each in order]
        answer = child.ask("call", timeout_s=limit_s, sets=order, seeds=seeds, into=into)
        times_us.append((time.perf_counter_ns() - began_ns) / 1e3)
        child.ask("unmap", timeout_s=limit_s, numbers=numbers)
        child.ask("unbind", timeout_s=limit_s, numbers=[number])
        if trail is not None:
            last = len(order) - 1
            compare(
                bench,
                sets[order[last]],
                answer,
                last,
                groups[last],
                name="first_calls",
                trail=trail,
            )
        for group in groups:
            for buffer in group:
                buffer.close()
