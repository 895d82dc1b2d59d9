"""One server process, by way of its keeper: started, found ready, watched, ended."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

KEEPER = Path(__file__).with_name("keeper.py")
LAST_LINES = 200
"""Of a log, read for why its server ended."""
LAST_BYTES = 64_000
GONE_S = 10.0
"""A keeper that takes longer to clear up is killed itself, and its server's group with it."""


class ServerProcess:
    """A command that runs until it ends or is stopped; what it started goes with it."""

    def __init__(self, *, log: Path) -> None:
        """Take where its output goes; nothing is started."""
        self._log = log
        self._log_start = 0
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._gone = asyncio.Event()
        self._code = -signal.SIGKILL
        self._keeper_pid = 0
        self.pid = 0
        """Of the server, which leads a process group; 0 until it is known."""

    @property
    def has_ended(self) -> bool:
        """Whether the server and all that it started are gone."""
        return self._gone.is_set()

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str]) -> None:
        """Start the command.

        Raises:
            OSError: the log cannot be written, or the keeper not started.
        """
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._log_start = log.tell()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", str(KEEPER), str(self._log)),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(environment),
            cwd="/",
            start_new_session=True,  # a Ctrl-C at the terminal is kopt's to handle
        )
        self._listening = asyncio.ensure_future(self._listen(self._process))

    async def ended(self) -> int:
        """Wait for the end of the server and all that it started; return its exit code.

        Negative: by that signal.
        """
        await self._gone.wait()
        return self._code

    async def stop(self, *, grace_s: float) -> None:
        """End the server: ask it to, kill it after a while, and wait until all of it is gone."""
        if self._process is None or self.has_ended:
            return
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # it has just ended
            self._process.stdin.write(f"stop {grace_s:g}\n".encode())
            await self._process.stdin.drain()
        try:
            await asyncio.wait_for(self._gone.wait(), grace_s + GONE_S)
        except TimeoutError:
            self._kill()
            await self._gone.wait()

    def last_lines(self) -> list[str]:
        """Return the last lines that this start of the server wrote."""
        try:
            with self._log.open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start, end - LAST_BYTES))
                text = log.read().decode("utf-8", errors="replace")
        except OSError:
            return []
        return list(deque(text.splitlines(), maxlen=LAST_LINES))

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """Hear what the keeper says until it is gone."""
        assert process.stdout is not None
        told = False
        while line := await process.stdout.readline():
            word, _, number = line.decode().strip().partition(" ")
            match word:
                case "keeper":
                    self._keeper_pid = int(number)
                case "server":
                    self.pid = int(number)
                case "exit":
                    self._code, told = int(number), True
        if not told:  # the keeper itself was killed
            self._kill()
        await process.wait()
        self._gone.set()

    def _kill(self) -> None:
        """Kill the keeper and the server's group: the last resort."""
        for kill, target in ((os.kill, self._keeper_pid), (os.killpg, self.pid)):
            if target:
                with suppress(ProcessLookupError):
                    kill(target, signal.SIGKILL)


def free_port(host: str) -> int:
    """Return a port of an address that nobody listens on just now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def is_taken(host: str, port: int) -> bool:
    """Return whether another program listens on a port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False
