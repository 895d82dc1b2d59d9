"""Limits of the kernel on one process and on what it forks: memory, files, processes, time."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

MAX_FILE_BYTES = 4 << 30
MAX_FILES = 4_096
MAX_PROCESSES = 512
PROCESSES_PER_CORE = 16
"""Processes and threads: room for pools of threads, and for a parallel build."""
MAX_CPU_S_PER_CORE = 3_600
"""Of one candidate's process; deadlines come first, this ends what escaped them."""
WORST_OOM_SCORE = 1_000
"""Where memory runs out all the same, the kernel ends a process of a candidate first."""


def max_processes() -> int:
    """Return the processes and threads that a child may have."""
    return MAX_PROCESSES + PROCESSES_PER_CORE * len(os.sched_getaffinity(0))


def limit_process(*, memory_bytes: int | None, by_data: bool, cpu_s: int | None) -> None:
    """Limit the calling process, for good.

    Args:
        memory_bytes: that it may map beyond what it maps now; None for no limit.
        by_data: count private writable memory alone: a CUDA context reserves address space far
            beyond what it uses.
        cpu_s: seconds of processor time; None for no limit.
    """
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
    _limit(resource.RLIMIT_NOFILE, MAX_FILES)
    if memory_bytes is not None and by_data:
        _limit(resource.RLIMIT_DATA, _pages(5) + memory_bytes)
    elif memory_bytes is not None:
        _limit(resource.RLIMIT_AS, _pages(0) + memory_bytes)
    if cpu_s is not None:
        _limit(resource.RLIMIT_CPU, cpu_s)


def limit_processes(number: int, *, counted_alone: bool) -> None:
    """Limit the processes and threads of the caller's user. Root is exempt from it.

    Args:
        number: that the child may have.
        counted_alone: the user has no others, or is in a user namespace, which counts anew.
    """
    others = 0 if counted_alone else _tasks_of(os.getuid())
    _limit(resource.RLIMIT_NPROC, number + others)


def die_first() -> None:
    """Have the kernel end this process and its descendants first where memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(WORST_OOM_SCORE), encoding="ascii")


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (ceiling, ceiling))


def _pages(field: int) -> int:
    """Bytes of a field of statm: 0 all that is mapped, 5 data and stack."""
    statm = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(statm.split()[field]) * resource.getpagesize()


def _tasks_of(user: int) -> int:
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if entry.stat().st_uid == user:
                count += len(os.listdir(entry / "task"))
        except OSError:
            continue  # ended meanwhile, or not ours to see
    return count
