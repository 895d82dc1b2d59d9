"""The processes that this one started, and those that they started, by Linux's /proc."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

STAT_PARENT = 1
"""Place of the parent's id in /proc/PID/stat, counted after the command, which may hold spaces."""


def descendants() -> list[int]:
    """Return the ids of this process's children and theirs; empty where there is no /proc."""
    children: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):  # it ended while we looked
            after_command = path.read_text(errors="replace").rpartition(")")[2].split()
            children[int(after_command[STAT_PARENT])].append(int(path.parent.name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        own = children.pop(waiting.pop(), [])
        found += own
        waiting += own
    return found


def kill_all(processes: Sequence[int]) -> None:
    """Kill processes by their ids, without waiting; those that are gone are passed over."""
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
