"""The lock of a run folder: one driver at a time writes a run.

`flock`, so that the lock goes with the process however it dies. The file holds who has it.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path

from kopt.data.atomic import store_error
from kopt.errors import StoreError

LOCK_FILE = ".lock"
LOOKS = 3
LOOK_S = 0.02
"""Between two tries to take the lock."""


class RunLock:
    """The exclusive lock of a run folder, held from construction to `release`."""

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            StoreError: another driver has it (the text names its process and host), or the folder
                cannot be written.
        """
        path = folder / LOCK_FILE
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise store_error(path, error) from error
        try:
            _lock(self._descriptor)
            os.ftruncate(self._descriptor, 0)
            owner = {"pid": os.getpid(), "host": socket.gethostname()}
            os.pwrite(self._descriptor, json.dumps(owner).encode(), 0)
        except BlockingIOError:
            os.close(self._descriptor)
            raise StoreError(
                str(folder), f"another driver runs here ({_owner(path)}); wait for it or end it"
            ) from None
        except OSError as error:
            os.close(self._descriptor)
            raise store_error(path, error) from error

    def release(self) -> None:
        """Let go; more than once is harmless."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _lock(descriptor: int) -> None:
    """Take the lock; whoever only looks at it (`lock_owner`) has it for microseconds.

    Raises:
        BlockingIOError: another driver has it.
    """
    for _ in range(LOOKS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOOK_S)
        else:
            return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_owner(folder: Path) -> str | None:
    """Return who writes this run now (`pid 7 on host`), or None where nobody does."""
    path = folder / LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _owner(path)
    finally:
        os.close(descriptor)
    return None


def _owner(path: Path) -> str:
    try:
        owner = json.loads(path.read_text())
        return f"pid {owner['pid']} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "which one is not known"
