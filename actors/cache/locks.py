"""Locks by `flock`: they go with their holder however it ends, so that none is ever stale.

A lock file says who has it (`pid 7 on host`), for whoever is refused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

SHARE_TRIES = 10
SHARE_PAUSE_S = 0.02
"""Whoever looks at who shares a lock holds it for himself for a moment."""


@contextmanager
def locked(path: Path, *, waits: bool = True) -> Iterator[IO[str]]:
    """Hold a lock that its holder may remove: a waiter then takes the new one.

    Args:
        path: the lock file, made where it is missing; its folder exists.
        waits: for whoever holds it now.

    Raises:
        BlockingIOError: somebody holds it, and we do not wait.
        OSError: the file cannot be made.
    """
    how = fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB)
    while True:
        with path.open("a+") as lock:
            fcntl.flock(lock, how)
            if _is_current(lock, path):
                _sign(lock)
                yield lock
                return


class Claim:
    """A lock that is held until `release`, and whose file goes with it."""

    def __init__(self, path: Path) -> None:
        """Take it at once.

        Raises:
            BlockingIOError: somebody has it.
            OSError: the file cannot be made.
        """
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._held = locked(path, waits=False)
        self._held.__enter__()

    def release(self) -> None:
        """Let go."""
        self._path.unlink(missing_ok=True)
        self._held.__exit__(None, None, None)


def share(path: Path) -> IO[str] | None:
    """Hold a lock beside others until the file that is returned is closed, or this process ends.

    Returns:
        None where the file cannot be made, or somebody holds the lock for himself.
    """
    for _ in range(SHARE_TRIES):
        with suppress(OSError):
            lock = path.open("a+")
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                raise
            return lock
        time.sleep(SHARE_PAUSE_S)
    return None


def holders(path: Path) -> list[str] | None:
    """Return who holds a lock now, as `pid 7`; None where nobody does.

    The list is empty where the kernel does not say: the holder is on another host or in another
    container.
    """
    try:
        with path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _holders_here(path) if error.errno == errno.EWOULDBLOCK else None
    return None


def _holders_here(path: Path) -> list[str]:
    with suppress(OSError):
        about = path.stat()
        file = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
        rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        return sorted({f"pid {row[4]}" for row in rows if len(row) > 5 and row[5] == file})
    return []


def _is_current(lock: IO[str], path: Path) -> bool:
    """Whether a lock's file is still the one of its name."""
    try:
        return os.stat(path).st_ino == os.fstat(lock.fileno()).st_ino
    except FileNotFoundError:
        return False


def _sign(lock: IO[str]) -> None:
    """Write who holds it; a full disk is no reason not to hold it."""
    with suppress(OSError):
        lock.truncate(0)
        lock.write(f"pid {os.getpid()} on {socket.gethostname()}\n")
        lock.flush()
