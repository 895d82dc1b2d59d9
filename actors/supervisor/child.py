"""One child as the supervisor holds it: commands with deadlines, its words bounded, its end sure.

Whatever the child does ends in an answer or in ChildFailed; it is then of no further use.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    nullcontext,
    suppress,
)
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopt.actors.child.channel import (
    MAX_FDS,
    MAX_REPLY_BYTES,
    Channel,
    ChannelClosed,
    ChannelGarbled,
)
from kopt.actors.child.tensor_spec import Shareable, TensorSpec, spec_from_json
from kopt.actors.supervisor.confinement import confinement_of
from kopt.actors.supervisor.environment import child_environment
from kopt.actors.supervisor.gate import Gate, Release
from kopt.actors.supervisor.last_words import LastWords, ending
from kopt.actors.supervisor.stoppable_clock import StoppableClock
from kopt.actors.supervisor.zygote import Zygote
from kopt.verdict import bounded_log

if TYPE_CHECKING:
    from kopt.actors.supervisor.turns import Hold, Turns

OPEN_S = 60.0
"""Making the device's context."""
MESSAGE_S = 10.0
"""For the rest of an answer that has begun: 256 KiB at most."""
ANSWER_S = 1.0
"""At least, to an answer whose calls were waited for already."""


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
        is_ahead: bool = False,
        turns: Turns | None = None,
        is_trusted: bool = False,
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
            is_ahead: forked before its candidate is known, which `adopt` names.
            turns: of the device; None where nothing is timed.
            is_trusted: it runs the reference: each command takes a turn. A candidate's turn is
                its evaluation's (judging.py).

        Raises:
            WorkerLost: the zygote is gone.
        """
        self._zygote = zygote
        self._settings, self._cache_dir = dict(settings), cache_dir
        self._turns, self._is_trusted = turns, is_trusted
        self._lent: Hold | None = None
        self.clock = StoppableClock()
        """Of its deadlines: time that it is stopped does not count."""
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
                    is_ahead=is_ahead,
                ),
                settings=dict(settings),
            )
        except BaseException:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise
        self._forked = forked
        self._channel = Channel(forked.talk, max_bytes=MAX_REPLY_BYTES)
        self._output = LastWords(forked.output)
        self._status: int | None = None
        self._next_number = 0
        self._gate: Gate | None = None
        self.sandbox = "none"
        """The level in force, once it was opened."""
        self.pool_words = 0
        """Of the pool that it sweeps between timed calls, once it was opened."""

    @property
    def pid(self) -> int:
        """Id of the process that was forked: the child, or whoever guards its PID namespace."""
        return self._forked.pid

    @property
    def is_guarded(self) -> bool:
        """Whether the child is a process below the one that was forked."""
        return "pid" in self.sandbox.split("+")

    def open(self) -> None:
        """Make the device's context, and on a GPU the page by which its blocks are released.

        Nothing untrusted has run in the child yet.

        Raises:
            ChildFailed: it cannot be made.
        """
        if self._settings["device"] == "cuda":
            self._gate = Gate()
        fds = [] if self._gate is None else [self._gate.fd]
        answer = self.ask("open", timeout_s=OPEN_S, fds=fds)
        self.sandbox = str(answer.get("sandbox", "none"))
        self.pool_words = int(answer.get("pool_words", 0))

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
        with self._turn():
            self._send(operation, fds=fds, **fields)
            return self._receive(operation, timeout_s=timeout_s)

    def ask_released(
        self,
        operation: str,
        *,
        timeout_s: float,
        patience_s: float,
        key: int,
        **fields: Any,  # noqa: ANN401 - JSON values
    ) -> tuple[dict[str, Any], Release]:
        """Run a command whose calls are queued on the device, and let them go.

        Args:
            operation: of the command.
            timeout_s: from when they go.
            patience_s: after which they go though not all are queued.
            key: that goes with them.
            fields: of the command.

        Returns:
            The answer, and when the calls went and were done.

        Raises:
            ChildFailed: as `ask`.
        """
        assert self._gate is not None, "a child is opened before it is timed"
        with self._turn():
            self._send(operation, ticket=self._gate.next_ticket(), key=0, **fields)
            release = self._gate.release(
                key=key,
                patience_s=patience_s,
                limit_s=timeout_s,
                has_answered=lambda: self._channel.wait(0.0),
            )
            left_s = timeout_s - release.wall_us / 1e6
            return self._receive(operation, timeout_s=max(left_s, ANSWER_S)), release

    def tell(self, operation: str, *, fds: Sequence[int] = (), **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Send a command, which holds the device until its `answer` is fetched.

        Raises:
            ChildFailed: the child is gone.
        """
        if self._turns is not None:
            self._lent = self._turns.lend(self, is_trusted=True)
        self._send(operation, fds=fds, **fields)

    def answer(self, operation: str, *, timeout_s: float) -> dict[str, Any]:
        """Return the answer of the command that was told.

        Raises:
            ChildFailed: as `ask`.
        """
        if self._turns is not None and self._lent is not None:
            self._turns.go_on(self._lent)  # if it was stopped for the turn that now waits for it
        try:
            return self._receive(operation, timeout_s=timeout_s)
        finally:
            self._give_back()

    def _turn(self) -> AbstractContextManager[None]:
        if self._turns is None:
            return nullcontext()
        return self._turns.shared() if self._is_trusted else self._turns.waiting(self)

    def _send(self, operation: str, *, fds: Sequence[int] = (), **fields: Any) -> None:  # noqa: ANN401 - JSON
        try:
            self._channel.send({"op": operation, **fields}, fds=fds)
        except ChannelClosed:
            raise self._died(operation) from None

    def _receive(self, operation: str, *, timeout_s: float) -> dict[str, Any]:
        try:
            self.clock.wait(self._channel.wait, timeout_s=timeout_s)
            answer, _ = self._channel.receive(timeout_s=MESSAGE_S)
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

    def share(self, tensors: Sequence[Shareable]) -> list[int]:
        """Let the child map these tensors; return their numbers in it.

        Raises:
            ChildFailed: it cannot map them.
            MemoryError: there is no room for the copies that it gets of sealed ones on a GPU.
        """
        numbers = list(range(self._next_number, self._next_number + len(tensors)))
        self._next_number += len(tensors)
        for begin in range(0, len(tensors), MAX_FDS):
            with ExitStack() as stack:
                part = [stack.enter_context(each.lent()) for each in tensors[begin:][:MAX_FDS]]
                self.ask(
                    "map",
                    timeout_s=OPEN_S,
                    fds=[lent.fd for lent in part],
                    numbers=numbers[begin : begin + MAX_FDS],
                    specs=[lent.spec.to_json() for lent in part],
                    places=[lent.place for lent in part],
                    private=[lent.is_private for lent in part],
                )
        return numbers

    def fetch(self, answer: Mapping[str, Any], *, timeout_s: float) -> list[Shareable]:
        """Return the tensors that an answer announced (`specs`), in shared memory of ours.

        Raises:
            ChildFailed: the child is gone, or announced something that is no tensor.
            MemoryError: they do not fit.
        """
        from kopt.actors.supervisor.exchange import new_tensor  # torch: no build comes here

        tensors = [new_tensor(spec, place=self._settings["exchange"]) for spec in specs_of(answer)]
        numbers = self.share(tensors)
        self.ask("fetch", timeout_s=timeout_s, into=numbers)
        self.ask("unmap", timeout_s=timeout_s, numbers=numbers)
        return tensors

    def adopt(self, *, dtype: str | None, build_dir: Path) -> None:
        """Give a child that was forked ahead its candidate's dtype and folder of builds.

        Raises:
            ChildFailed: it is gone, or cannot copy the builds.
        """
        environment = child_environment(
            scratch=self._scratch,
            num_threads=self._settings["num_threads"],
            cache_dir=self._cache_dir,
            build_dir=build_dir,
        )
        folder = os.open(build_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.ask(
                "adopt",
                timeout_s=OPEN_S,
                fds=[folder],
                environment=environment,
                dtype=dtype,
                folder=str(build_dir.resolve()),
            )
        finally:
            os.close(folder)

    def kill(self) -> None:
        """Kill its processes, from another thread than the one whose child it is."""
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGKILL)

    def end(self) -> int:
        """Kill the child with everything it started, and remove its scratch folder.

        Returns:
            Its exit status, negative for a signal.
        """
        self._give_back()
        if self._status is None:
            self._channel.close()
            self._status = self._zygote.end(self._forked)
            self._output.close()
            if self._gate is not None:
                self._gate.close()
            shutil.rmtree(self._scratch, ignore_errors=True)
        return self._status

    def output(self) -> str:
        """Return the last of what the child printed."""
        return self._output.text()

    def _give_back(self) -> None:
        if self._turns is not None and self._lent is not None:
            self._turns.give_back(self._lent)
            self._lent = None

    def _died(self, operation: str) -> ChildFailed:
        how = ending(self.end())
        printed = self._output.text().strip()
        log = f"{printed}\n{how}" if printed else how
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
