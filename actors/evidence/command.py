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


class Running:
    """A command that was started; the caller ends it, by `finish` or by `kill`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Start it.

        Args:
            command: the program and its arguments.
            environment: its whole environment; None for ours.
            folder: where it runs; None for here.

        Raises:
            OSError: the program cannot be started.
        """
        self._began_s = time.monotonic()
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `kill`
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=subprocess.STDOUT,
                env=None if environment is None else dict(environment),
                cwd=folder,
                start_new_session=True,
            )
        except OSError:
            self._printed.close()
            raise

    def is_going(self) -> bool:
        """Return whether it has not ended yet."""
        return self._process.poll() is None

    def finish(self, *, timeout_s: float) -> Done:
        """Wait for its end, or for the deadline from now on: then its whole group is killed."""
        try:
            returncode: int | None = self._process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            returncode = None
        finally:
            self._end()
        self._printed.seek(0)
        output = self._printed.read(MAX_OUTPUT).decode(errors="replace")
        self._printed.close()
        seconds = time.monotonic() - self._began_s
        return Done(returncode=returncode, output=output, seconds=seconds)

    def kill(self) -> None:
        """End it with its group, whatever it does; nothing where it was finished."""
        if not self._printed.closed:
            self._end()
            self._printed.close()

    def _end(self) -> None:
        """End what the command left behind, too."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # it is in the kernel's hands then
            self._process.wait(timeout=KILL_S)


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
    running = Running(command, environment=environment, folder=folder)
    return running.finish(timeout_s=timeout_s)
