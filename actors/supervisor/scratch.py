"""Scratch folders of children, below one folder that its process holds a lock on.

A lock goes with the process that holds it, however that one ends: whoever starts next removes the
folders on which nobody holds one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "kopt-scratch-"


class ScratchRoot:
    """One process's folder of scratch folders."""

    def __init__(self) -> None:
        """Make it, and remove those whose processes are gone."""
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        for left in self.path.parent.glob(f"{PREFIX}*"):
            if left != self.path:
                _remove_if_left(left)

    def new(self) -> Path:
        """Return a new, empty folder that no other user can enter."""
        return Path(tempfile.mkdtemp(dir=self.path))

    def close(self) -> None:
        """Remove it with everything in it; closing again does nothing."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError):  # not ours, removed meanwhile, or locked: somebody's
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
