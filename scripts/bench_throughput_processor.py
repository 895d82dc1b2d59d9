"""Processor seconds of this process and all below it, for a comparison that a busy host leaves be.

Read from /proc: a process's own seconds and those of its children that it has waited for. What a
process took that ended with nobody waiting for it is lost, and so is what its orphans take.
"""

from __future__ import annotations

import os
from pathlib import Path

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def tree_cpu_s(pid: int | None = None, *, proc: Path = Path("/proc")) -> float:
    """Return processor seconds so far, user and system, of a process and its descendants.

    Args:
        pid: of the process; None for this one.
        proc: where the kernel tells of processes.
    """
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for path in proc.glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may hold blanks and parentheses.
            words = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        number = int(path.parent.name)
        children.setdefault(int(words[1]), []).append(number)
        ticks[number] = sum(map(int, words[11:15]))
    stack, total = [os.getpid() if pid is None else pid], 0
    while stack:
        number = stack.pop()
        total += ticks.get(number, 0)
        stack.extend(children.get(number, ()))
    return total * _TICK_S
