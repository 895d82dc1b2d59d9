"""A profiler's command ends, one way or the other, with everything that it started."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from kopt.actors.evidence.command import run_command


def test_what_a_command_prints_is_returned() -> None:
    done = run_command(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=10)
    assert (done.returncode, done.ended_well) == (3, False)
    assert done.output.split() == ["out", "err"]


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path) -> None:
    note = tmp_path / "pid"
    done = run_command(["sh", "-c", f"sleep 60 & echo $! > {note}; wait"], timeout_s=0.5)
    assert done.returncode is None
    assert done.seconds < 10
    assert not _is_alive(int(note.read_text()))


def test_what_a_command_leaves_behind_is_killed_too(tmp_path) -> None:
    note = tmp_path / "pid"
    done = run_command(["sh", "-c", f"sleep 60 & echo $! > {note}"], timeout_s=10)
    assert done.ended_well
    assert not _is_alive(int(note.read_text()))


def test_a_command_sees_the_environment_that_it_is_given_and_no_other(monkeypatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hidden")
    program = "import os; print(sorted(os.environ))"
    done = run_command([sys.executable, "-c", program], timeout_s=30, environment={"A": "1"})
    assert "SECRET_KEY" not in done.output
    assert "'A'" in done.output


def test_a_program_that_is_not_there_says_so() -> None:
    with pytest.raises(FileNotFoundError):
        run_command(["/nowhere/ncu"], timeout_s=1)


def _is_alive(pid: int) -> bool:
    """Whether a process runs: one that was killed and not yet waited for does not."""
    for _ in range(1000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state == "Z":
            return False
        os.sched_yield()
        time.sleep(0)
    return True
