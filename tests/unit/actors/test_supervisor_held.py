"""Holding a child still: every process of it stops, and goes on afterwards."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kopt.actors.supervisor.held import held

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.readline()
child.kill()
"""


@dataclass
class Started:
    """A process with another in a session of its own, as a child of ours may be."""

    pid: int
    below: int
    is_guarded: bool = False


@pytest.fixture
def started() -> Iterator[Started]:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield Started(process.pid, int(process.stdout.readline()))
        process.communicate("\n", timeout=20)


def stops(pid: int) -> bool:
    """Whether a process is stopped, or is so once it would run again."""
    deadline_s = time.monotonic() + 10.0
    while state(pid) != "T":
        if time.monotonic() > deadline_s:
            return False
    return True


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]


def test_a_child_and_what_it_started_are_stopped_and_go_on(started) -> None:
    with held(started):
        assert stops(started.pid)
        assert stops(started.below)
    assert "T" not in (state(started.pid), state(started.below))


def test_a_guard_is_left_alone(started) -> None:
    started.is_guarded = True
    with held(started):
        assert state(started.pid) != "T"
        assert stops(started.below)


def test_they_go_on_where_what_is_timed_fails(started) -> None:
    with pytest.raises(ZeroDivisionError), held(started):
        raise ZeroDivisionError
    assert "T" not in (state(started.pid), state(started.below))


def test_a_child_that_is_gone_is_no_fault() -> None:
    reached = False
    with held(Started(pid=2**22 + 1, below=0)):
        reached = True
    assert reached
