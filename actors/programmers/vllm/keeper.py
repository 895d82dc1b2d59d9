"""Keeps one server process and all that it starts: none of it outlives the keeper or its parent.

A program of its own, run by path with the standard library alone: whoever started it may be killed
at any time, and a server killed by signal leaves its engine processes behind. The keeper hears of
the first by the end of its standard input, and adopts the second. It is nobody's child itself: Ray
kills the children of a worker that exits, and with them would go the only one who clears up.

Usage: python -I -S keeper.py LOG COMMAND…
It writes `keeper PID` and `server PID` on standard output, and `exit CODE` when all is gone
(negative: by that signal; 127: the command cannot be started).
A line `stop SECONDS` on standard input asks the server to end and kills it after so long; the end
of standard input kills it at once.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TICK_S = 0.05
"""Between two looks at the server."""


def main(log_path: str, command: list[str]) -> None:
    """Run the command until it ends or is ended."""
    if os.fork():
        os._exit(0)
    _say(f"keeper {os.getpid()}")
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    parent = os.getpid()

    def tie() -> None:  # in the child, before it becomes the server
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    with open(log_path, "ab") as log:
        try:
            server = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=tie,
            )
        except OSError as error:
            log.write(f"OSError: {error}\n".encode())
            log.flush()
            _say("exit 127")
            return
    _say(f"server {server.pid}")
    code = _watch(server)
    _end_group(server)
    _say(f"exit {code}")


def _watch(server: subprocess.Popen[bytes]) -> int:
    """Wait for the server's end, and bring it about when asked to."""
    kill_at_s: float | None = None
    heard = b""
    listening = True
    while (code := server.poll()) is None:
        if kill_at_s is not None and time.monotonic() >= kill_at_s:
            os.killpg(server.pid, signal.SIGKILL)
            return server.wait()
        if not listening:
            time.sleep(TICK_S)
            continue
        if not select.select([0], [], [], TICK_S)[0]:
            continue
        piece = os.read(0, 4096)
        heard += piece
        if not piece:
            listening, kill_at_s = False, time.monotonic()
        elif b"\n" in heard:
            grace_s = float(heard.split()[1])
            listening, kill_at_s = False, time.monotonic() + grace_s
            os.kill(server.pid, signal.SIGTERM)
    return code


def _end_group(server: subprocess.Popen[bytes]) -> None:
    """Kill what the server left behind, in its group or out of it, and wait until it is gone."""
    _kill(os.killpg, server.pid)
    while True:
        for pid in _children():
            _kill(os.kill, pid)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _kill(kill: Callable[[int, int], None], target: int) -> None:
    try:
        kill(target, signal.SIGKILL)
    except ProcessLookupError:
        return


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listed:
        return [int(word) for word in listed.read().split()]


def _say(line: str) -> None:
    try:
        os.write(1, f"{line}\n".encode())
    except BrokenPipeError:
        return  # nobody is left to hear it


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
