"""One child as the supervisor holds it: commands with deadlines, its words bounded, its end sure.

Whatever the child does ends in an answer or in ChildFailed; it is then of no further use.
"""

from __future__ import annotations

import array
import fcntl
import os
import shutil
import signal
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kopt.actors.child.channel import (
    MAX_FDS,
    MAX_REPLY_BYTES,
    Channel,
    ChannelClosed,
    ChannelGarbled,
)
from kopt.actors.child.memory import SharedTensor, TensorSpec, spec_from_json
from kopt.actors.supervisor.confinement import confinement_of
from kopt.actors.supervisor.environment import child_environment
from kopt.actors.supervisor.zygote import Zygote
from kopt.verdict import LOG_BYTES, bounded_log

OPEN_S = 60.0
"""Making the device's context."""
SETTLE_TURNS = 100
SETTLE_S = 0.002


class ChildFailed(Exception):
    """A command came to nothing, through the fault of the code in the child."""

    def __init__(self, how: str, stage: str, log: str, limit_s: float = 0.0) -> None:
        super().__init__(how, stage, log, limit_s)
        self.how = how
        """`raised`, `died` or `timed_out`."""
        self.stage = stage
        """What the child said it was doing, or the command."""
        self.log = log
        """The traceback, or how it died with its last output."""
        self.limit_s = limit_s
        """The deadline that was missed."""

    def __str__(self) -> str:
        return f"{self.stage}: {self.how}: {self.log.strip().splitlines()[-1:] or ['']}"


class Child:
    """A child process with one module in it."""

    def __init__(
        self,
        zygote: Zygote,
        *,
        settings: Mapping[str, Any],
        cache_dir: Path,
        memory_bytes: int,
        build_dir: Path | None = None,
        keeps_builds: bool = False,
    ) -> None:
        """Fork it; its device is opened with the first command.

        Args:
            zygote: that forks it.
            settings: what it is told (see `Bench`).
            cache_dir: kopt's cache.
            memory_bytes: host memory it may map.
            build_dir: the candidate's folder of builds; None for the reference.
            keeps_builds: what it adds to that folder stays; otherwise the next run of the
                candidate finds what the build left, and no answers of this one.

        Raises:
            WorkerLost: the zygote is gone.
        """
        self._zygote = zygote
        self._scratch = zygote.scratch.new()
        try:
            forked = zygote.fork(
                environment=child_environment(
                    scratch=self._scratch,
                    num_threads=settings["num_threads"],
                    cache_dir=cache_dir,
                    build_dir=build_dir,
                ),
                confinement=confinement_of(
                    self._scratch,
                    settings=settings,
                    cache_dir=cache_dir,
                    memory_bytes=memory_bytes,
                    build_dir=build_dir,
                    keeps_builds=keeps_builds,
                ),
                settings=dict(settings),
            )
        except BaseException:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise
        self._forked = forked
        self._channel = Channel(forked.talk, max_bytes=MAX_REPLY_BYTES)
        self._output = _LastWords(forked.output)
        self._status: int | None = None
        self._next_number = 0
        self.sandbox = "none"
        """The level in force, once it was opened."""

    @property
    def pid(self) -> int:
        """Id of the process that was forked: the child, or whoever guards its PID namespace."""
        return self._forked.pid

    @property
    def is_guarded(self) -> bool:
        """Whether the child is a process below the one that was forked."""
        return "pid" in self.sandbox.split("+")

    def open(self) -> None:
        """Make the device's context.

        Raises:
            ChildFailed: it cannot be made.
        """
        self.sandbox = str(self.ask("open", timeout_s=OPEN_S).get("sandbox", "none"))

    def ask(
        self,
        operation: str,
        *,
        timeout_s: float,
        fds: Sequence[int] = (),
        **fields: Any,  # noqa: ANN401 - JSON values
    ) -> dict[str, Any]:
        """Run a command and return its answer, which is untrusted.

        Raises:
            ChildFailed: it raised, died, or did not end in time. The child is of no further use
                unless it `raised`.
        """
        self.tell(operation, fds=fds, **fields)
        return self.answer(operation, timeout_s=timeout_s)

    def tell(self, operation: str, *, fds: Sequence[int] = (), **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Send a command; its `answer` is fetched later.

        Raises:
            ChildFailed: the child is gone.
        """
        try:
            self._channel.send({"op": operation, **fields}, fds=fds)
        except ChannelClosed:
            raise self._died(operation) from None

    def answer(self, operation: str, *, timeout_s: float) -> dict[str, Any]:
        """Return the answer of the command that was told.

        Raises:
            ChildFailed: as `ask`.
        """
        try:
            answer, _ = self._channel.receive(timeout_s=timeout_s)
        except TimeoutError:
            self.end()
            raise ChildFailed("timed_out", operation, "", timeout_s) from None
        except ChannelClosed:
            raise self._died(operation) from None
        except ChannelGarbled as error:
            self.end()
            raise ChildFailed("died", operation, f"spoke out of turn: {error}") from None
        if "failed" in answer:
            printed = self._output.settled() if operation == "import" else ""
            log = bounded_log(f"{printed}\n{answer.get('log', '')}".lstrip())
            raise ChildFailed("raised", str(answer["failed"])[:100], log)
        return answer

    def share(self, tensors: Sequence[SharedTensor]) -> list[int]:
        """Let the child map these tensors; return their numbers in it.

        Raises:
            ChildFailed: it cannot map them.
        """
        numbers = list(range(self._next_number, self._next_number + len(tensors)))
        self._next_number += len(tensors)
        for begin in range(0, len(tensors), MAX_FDS):
            part = tensors[begin : begin + MAX_FDS]
            self.ask(
                "map",
                timeout_s=OPEN_S,
                fds=[tensor.fd for tensor in part],
                numbers=numbers[begin : begin + MAX_FDS],
                specs=[tensor.spec.to_json() for tensor in part],
                sealed=[tensor.is_sealed for tensor in part],
            )
        return numbers

    def fetch(self, answer: Mapping[str, Any], *, timeout_s: float) -> list[SharedTensor]:
        """Return the tensors that an answer announced (`specs`), in shared memory of ours.

        Raises:
            ChildFailed: the child is gone, or announced something that is no tensor.
            MemoryError: they do not fit.
        """
        tensors = [SharedTensor(spec) for spec in specs_of(answer)]
        numbers = self.share(tensors)
        self.ask("fetch", timeout_s=timeout_s, into=numbers)
        self.ask("unmap", timeout_s=timeout_s, numbers=numbers)
        return tensors

    def end(self) -> int:
        """Kill the child with everything it started, and remove its scratch folder.

        Returns:
            Its exit status, negative for a signal.
        """
        if self._status is None:
            self._channel.close()
            self._status = self._zygote.end(self._forked)
            self._output.close()
            shutil.rmtree(self._scratch, ignore_errors=True)
        return self._status

    def output(self) -> str:
        """Return the last of what the child printed."""
        return self._output.text()

    def _died(self, operation: str) -> ChildFailed:
        status = self.end()
        how = f"killed by {signal_name(-status)}" if status < 0 else f"exit status {status}"
        printed = self._output.text().strip()
        log = f"{printed}\nthe process ended: {how}" if printed else f"the process ended: {how}"
        return ChildFailed("died", operation, bounded_log(log))


def specs_of(answer: Mapping[str, Any]) -> list[TensorSpec]:
    """Return the specs that a child's answer announces.

    Raises:
        ChildFailed: it announces something else.
    """
    try:
        return [spec_from_json(spec) for spec in answer["specs"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ChildFailed("died", "answer", f"spoke out of turn: {error}") from None


def signal_name(number: int) -> str:
    """Return `SIGSEGV (11)` for 11."""
    try:
        return f"{signal.Signals(number).name} ({number})"
    except ValueError:
        return f"signal {number}"


class _LastWords:
    """Reads a pipe to its end on a thread of its own, keeping the last LOG_BYTES."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._is_open = True
        self._lock = threading.Lock()
        self._tail = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def text(self) -> str:
        return self._tail.decode(errors="replace")

    def settled(self) -> str:
        """Return the text once the pipe is empty: a compiler's words come before its failure."""
        for _ in range(SETTLE_TURNS):
            time.sleep(SETTLE_S)
            waiting = array.array("i", [0])
            with self._lock:
                if not self._is_open:
                    break
                fcntl.ioctl(self._fd, termios.FIONREAD, waiting)
            if waiting[0] == 0:
                break
        return self.text()

    def close(self) -> None:
        """Wait for the end of the pipe: every writer is dead by now."""
        self._reader.join(timeout=2.0)

    def _read(self) -> None:
        try:
            while chunk := os.read(self._fd, 1 << 16):
                self._tail = (self._tail + chunk)[-LOG_BYTES:]
        finally:
            with self._lock:
                self._is_open = False
                os.close(self._fd)
