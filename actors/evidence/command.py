"""A profiler's command: in a process group of its own, with a deadline, its words bounded."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MAX_OUTPUT = 64 << 20
"""Bytes that are read of what a command prints."""
KILL_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a command ended."""

    returncode: int | None
    """None where it did not end in time and was killed."""
    output: str
    """Both streams, up to MAX_OUTPUT."""
    seconds: float

    @property
    def ended_well(self) -> bool:
        """Whether it ended by itself, without an error."""
        return self.returncode == 0


def run_command(
    command: Sequence[str],
    *,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Done:
    """Run a command to its end, or to its deadline: then its whole group is killed.

    Args:
        command: the program and its arguments.
        timeout_s: seconds until it is killed.
        environment: its whole environment; None for ours.
        folder: where it runs; None for here.

    Raises:
        OSError: the program cannot be started.
    """
    began_s = time.monotonic()
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env=None if environment is None else dict(environment),
            cwd=folder,
            start_new_session=True,
        )
        try:
            returncode: int | None = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            returncode = None
        finally:
            _kill_group(process.pid)
            with suppress(subprocess.TimeoutExpired):  # it is in the kernel's hands then
                process.wait(timeout=KILL_S)
        printed.seek(0)
        output = printed.read(MAX_OUTPUT).decode(errors="replace")
    return Done(returncode=returncode, output=output, seconds=time.monotonic() - began_s)


def _kill_group(pid: int) -> None:
    """End what the command left behind, too."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
