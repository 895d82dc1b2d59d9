"""What confines a child: its own session, limits, no new privileges, no network where allowed.

Each step says whether it is in force; the verdict names the level. What the kernel does not allow
is left out, never assumed.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWNET = 0x40000000
_CLONE_NEWIPC = 0x08000000

_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63
_KEPT_CAPABILITIES = (1 << 1) | (1 << 2) | (1 << 3)
"""DAC_OVERRIDE, DAC_READ_SEARCH and FOWNER: root's files may belong to others (a mounted home)."""

MAX_FILE_BYTES = 4 << 30
MAX_FILES = 4_096
MAX_PROCESSES = 512
"""For users other than root, on whom the kernel enforces it."""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ended, so that none escapes."""
    _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def conceal() -> None:
    """Have the kernel refuse other processes of this user the memory of the calling one.

    Whoever holds CAP_SYS_PTRACE can read it all the same, which `confine` takes from children.
    """
    _libc().prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def confine(*, memory_bytes: int | None) -> str:
    """Confine the calling process, for good.

    Args:
        memory_bytes: host memory it may map beyond what it maps now; None for no limit (a CUDA
            context reserves address space far beyond what it uses).

    Returns:
        The level in force: `process`, or `namespace` where the network is cut off too.
    """
    os.setsid()
    die_with_parent()
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
    _limit(resource.RLIMIT_NOFILE, MAX_FILES)
    if os.geteuid() != 0:
        _limit(resource.RLIMIT_NPROC, MAX_PROCESSES)
    if memory_bytes is not None:
        _limit(resource.RLIMIT_AS, _mapped_bytes() + memory_bytes)
    level = "process"
    if _libc().unshare(_CLONE_NEWNET | _CLONE_NEWIPC) == 0:
        level = "namespace"
    _drop_capabilities()
    _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return level


def _drop_capabilities() -> None:
    """Leave root what concerns files alone: no reading of other processes, no mounts."""
    libc = _libc()
    for number in range(_LAST_CAPABILITY + 1):
        if not _KEPT_CAPABILITIES >> number & 1:
            libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # where it may not, it has none to drop
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    held = (ctypes.c_uint32 * 6)()
    if libc.capget(header, held) != 0:
        return
    for index in range(6):  # effective, permitted, inheritable; then the same of the upper half
        held[index] &= _KEPT_CAPABILITIES if index < 2 else 0
    libc.capset(header, held)


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (ceiling, ceiling))


def _mapped_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()
