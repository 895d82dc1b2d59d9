"""The supervisor's side of the zygote: started once, asked to fork children and to end them."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

from kopt.actors.child.channel import Channel, ChannelClosed
from kopt.actors.child.preload import Preload
from kopt.actors.child.sandbox.confine import Confinement
from kopt.actors.child.sandbox.levels import joined, wanted_levels
from kopt.actors.supervisor.scratch import ScratchRoot
from kopt.environment import sandbox_levels
from kopt.errors import WorkerLost

START_S = 120.0
"""Importing torch on a cold, busy host."""
ORDER_S = 30.0
END_S = 15.0
"""For a zygote to end what its children left; then it is killed."""
FIRST_LOOK_S = 0.002
LAST_LOOK_S = 0.02
"""Between two looks at a child that is being ended, the first and the last."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """A child that was forked."""

    pid: int
    generation: int
    """Which zygote forked it."""
    talk: socket.socket
    """Our end of its commands."""
    output: int
    """Our end of its stdout and stderr: a pipe's descriptor."""


class Zygote:
    """One zygote process, for the threads of a supervisor. Restarted by itself if it died."""

    def __init__(self, environment: dict[str, str], *, preload: Preload | None = None) -> None:
        """Start it; `fork` waits until it is ready.

        Args:
            environment: of the process: what OpenMP and CUDA read when they are loaded. A child's
                own environment comes with each fork.
            preload: what it loads for its children; None for what each of them needs.

        Raises:
            ConfigError: KOPT_SANDBOX names a level that there is not.
        """
        self._environment = environment
        self._levels = joined(wanted_levels(sandbox_levels()))
        self._preload = preload or Preload()
        self.scratch = ScratchRoot()
        """Where its children's scratch folders are."""
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._speaking = threading.RLock()
        """One order at a time."""
        self.generation = 0
        """Counts restarts: every child of an earlier generation is dead."""
        self._start()

    def fork(
        self,
        *,
        environment: dict[str, str],
        confinement: Confinement,
        settings: dict[str, Any],
    ) -> Forked:
        """Fork a child.

        Raises:
            WorkerLost: the zygote is gone, also after a restart.
        """
        ours, theirs = socket.socketpair()
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        order = {
            "op": "spawn",
            "environment": environment,
            "confinement": confinement.to_json(),
            "settings": settings,
        }
        try:
            with self._speaking:
                answer = self._ask(order, fds=(theirs.fileno(), write_end))
                generation = self.generation
        except WorkerLost:
            ours.close()
            os.close(read_end)
            raise
        finally:
            theirs.close()
            os.close(write_end)
        return Forked(pid=int(answer["pid"]), generation=generation, talk=ours, output=read_end)

    def end(self, forked: Forked) -> int:
        """Kill a child with everything it started; return its exit status, negative for a signal.

        A child whose zygote is gone died with it. Others may speak to the zygote while it goes.
        """
        pause_s = FIRST_LOOK_S
        while True:
            with self._speaking:
                if forked.generation != self.generation:
                    return -signal.SIGKILL
                try:
                    answer = self._ask({"op": "end", "pid": forked.pid})
                except WorkerLost:
                    return -signal.SIGKILL
            if "status" in answer:
                return int(answer["status"])
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LAST_LOOK_S)

    def ensure(self) -> None:
        """Start it again if it died since it was last asked; `generation` tells."""
        with self._speaking:
            if self._process is None or self._process.poll() is not None:
                self._stop()
                self._restart()

    def close(self) -> None:
        """End the zygote, once it has ended its children with everything they started."""
        with self._speaking:
            self._stop()
            self.scratch.close()

    def _stop(self) -> None:
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            try:
                self._process.wait(timeout=END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stderr is not None:
                self._process.stderr.close()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "kopt.actors.child.zygote",
                str(theirs.fileno()),
                self._levels,
                *self._preload.words(),
            ],
            pass_fds=(theirs.fileno(),),
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        theirs.close()
        self._channel = Channel(ours)
        self._is_ready = False

    def _restart(self) -> None:
        self.generation += 1
        self._start()

    def _ask(self, order: dict[str, Any], fds: tuple[int, ...] = ()) -> dict[str, Any]:
        for attempt in (1, 2):
            try:
                self._await_ready()
                assert self._channel is not None
                self._channel.send(order, fds=fds)
                answer, _ = self._channel.receive(timeout_s=ORDER_S)
            except (ChannelClosed, TimeoutError) as error:
                why = self._last_words() or str(error) or "no answer"
                self._stop()
                self._restart()
                if attempt == 2 or order["op"] != "spawn":
                    raise WorkerLost("zygote", why) from error
            else:
                return answer
        raise AssertionError("unreachable")

    def _await_ready(self) -> None:
        """Wait for its first message; one that spoilt its forks makes room for one that does not.

        Raises:
            ChannelClosed: it ended.
            TimeoutError: it says nothing.
        """
        while not self._is_ready:
            assert self._channel is not None
            said, _ = self._channel.receive(timeout_s=START_S)
            if "refused" not in said:
                self._is_ready = True
                return
            _LOG.warning("children load by themselves what they need: %s", said["refused"])
            self._preload = replace(self._preload, is_lean=True)
            self._stop()
            self._start()

    def _last_words(self) -> str:
        process = self._process
        if process is None or process.stderr is None:
            return ""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        words = process.stderr.read().decode(errors="replace").strip().splitlines()
        return words[-1] if words else f"exit status {process.wait()}"
