"""A child held still while something else is timed: what it left running slows nobody down.

Threads and processes of a candidate that go on after its call would take the cores from the
baseline, which is timed between the candidate's blocks, and make it look slow. Source: exploits 35.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kopt.actors.supervisor.child import Child

TURNS = 5
"""Looks at what it has started meanwhile; a bomb of processes is not waited for."""


@contextmanager
def held(child: Child) -> Iterator[None]:
    """Stop every process of a child for a while; where the host refuses, nothing is stopped."""
    stopped: set[int] = set()
    try:
        for _ in range(TURNS):
            new = processes(child) - stopped
            if not new:
                break
            for pid in new:
                _signal(pid, signal.SIGSTOP)
            stopped |= new
        yield
    finally:
        for pid in stopped:
            _signal(pid, signal.SIGCONT)


def processes(child: Child) -> set[int]:
    """Return the ids of a child's process and of all that it started, its guard left out."""
    found: set[int] = set()
    wave = {child.pid}
    while wave:
        found |= wave
        wave = {each for pid in wave for each in _children_of(pid)} - found
    return found - {child.pid} if child.is_guarded else found


def _children_of(pid: int) -> Iterator[int]:
    with suppress(OSError):  # it ended meanwhile
        for listing in Path(f"/proc/{pid}/task").glob("*/children"):
            yield from map(int, listing.read_text(encoding="ascii").split())


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
