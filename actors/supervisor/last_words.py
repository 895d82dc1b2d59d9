"""What a child prints: read to the end, so that it never waits for a reader, and kept bounded."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import termios
import threading
import time

from kopt.error_line import KILLED
from kopt.verdict import LOG_BYTES

SETTLE_TURNS = 100
SETTLE_S = 0.002


class LastWords:
    """Reads a pipe to its end on a thread of its own, keeping the last LOG_BYTES."""

    def __init__(self, fd: int) -> None:
        """Start to read a pipe's end, which is ours from now on."""
        self._fd = fd
        self._is_open = True
        self._lock = threading.Lock()
        self._tail = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def text(self) -> str:
        """Return the last of what was said so far."""
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


def ending(status: int) -> str:
    """Return the line on how a process ended.

    Args:
        status: of its exit, negative for a signal.
    """
    if status >= 0:
        return f"the process ended: exit status {status}"
    try:
        name = f"{signal.Signals(-status).name} ({-status})"
    except ValueError:
        name = f"signal {-status}"
    return f"{KILLED} {name}"
