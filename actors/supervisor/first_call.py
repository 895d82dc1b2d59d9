"""One call on an input set that a child sees for the first time, by our clock."""

from __future__ import annotations

import time
from typing import Any

from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.inputs import JudgedSet, close_all
from kopt.actors.supervisor.outputs import poisoned
from kopt.actors.supervisor.reference import Reference, bind


def first_call(
    child: Child, judged: JudgedSet, *, number: int, into: list[int], limit_s: float
) -> tuple[dict[str, Any], float]:
    """Give a child an input set and run its module on it once; return (answer, microseconds).

    By our clock, from when the child gets to see the inputs until its outputs are in our buffers.

    Raises:
        ChildFailed: it is gone, or the module raises or hangs.
    """
    began_ns = time.perf_counter_ns()
    bind(child, judged, number=number, timeout_s=limit_s)
    answer = child.ask("call", timeout_s=limit_s, sets=[number], seeds=[judged.seed], into=[into])
    return answer, (time.perf_counter_ns() - began_ns) / 1e3


def reference_first_us(reference: Reference, judged: JudgedSet, *, number: int) -> float:
    """Return the microseconds of the reference's call on an input set that is bound anew.

    Raises:
        ChildFailed: it fails.
    """
    buffers = poisoned(judged.outputs)
    into = reference.child.share(buffers)
    _, first_us = first_call(
        reference.child, judged, number=number, into=into, limit_s=reference.limit_s
    )
    reference.child.ask("unmap", timeout_s=reference.limit_s, numbers=into)
    close_all(buffers)
    return first_us
