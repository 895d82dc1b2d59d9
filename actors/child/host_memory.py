"""How much host memory there is, and what keeps shared memory as it is."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")

OF_THIS_SIZE: int = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
"""Seals of memory that a child may write: what it cut off would end whoever looks there."""


def available_bytes() -> int:
    """Return the host memory that is available now, to this container where it is limited."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        for line in meminfo:
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    limit = _CGROUP / "memory.max"
    if not limit.exists() or limit.read_text(encoding="ascii").strip() == "max":
        return free
    used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
    for line in (_CGROUP / "memory.stat").read_text(encoding="ascii").splitlines():
        if line.startswith("inactive_file "):
            used -= int(line.split()[1])  # the page cache makes room
    return min(free, max(int(limit.read_text(encoding="ascii")) - used, 0))
