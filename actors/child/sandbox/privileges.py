"""Privileges: capabilities, the user, and whom the kernel lets look at a process or outlive it."""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

from kopt.actors.child.sandbox.kernel import (
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_RAISE,
    PR_CAPBSET_DROP,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_KEEPCAPS,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    libc,
    prctl,
    succeed,
)

_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63
_KEPT = (1 << 1) | (1 << 2) | (1 << 3)
"""DAC_OVERRIDE, DAC_READ_SEARCH and FOWNER: root's files may belong to others (a mounted home)."""

FIRST_USER = 0x7000_0000
"""Users of children are numbered from here: nobody's, far from those of people and containers."""
NUM_USERS = 1 << 20


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends; a change of user undoes it."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ended, so that none escapes."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def conceal() -> None:
    """Have the kernel refuse other processes of this user the memory of the calling one.

    Whoever holds CAP_SYS_PTRACE can read it all the same, which children do not.
    """
    prctl(PR_SET_DUMPABLE, 0)


def user_for(pid: int) -> int:
    """Return the user of the child with this process id: no other living child's."""
    return FIRST_USER + pid % NUM_USERS


def has_user(user: int) -> bool:
    """Return whether a user exists here: a container may know a few alone."""
    for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
        first, _, length = (int(field) for field in line.split())
        if first <= user < first + length:
            return True
    return False


def renounce(*, user: int | None) -> None:
    """Leave the process what concerns files alone: no reading of other processes, no mounts.

    Args:
        user: that root becomes, with a group of the same number; it owns nothing. None to stay.
            Compilers that the process starts keep the rest too: caches belong to others.

    Raises:
        OSError: the kernel refuses.
    """
    for number in range(_LAST_CAPABILITY + 1):
        if not _KEPT >> number & 1:
            with suppress(OSError):  # where it may not, it has none to drop
                prctl(PR_CAPBSET_DROP, number)
    if user is None:
        _set_capabilities(inheritable=False)
        return
    prctl(PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _set_capabilities(inheritable=True)
    for number in range(_LAST_CAPABILITY + 1):
        if _KEPT >> number & 1:
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number)


def forbid_new_privileges() -> None:
    """Have no program that the process starts gain any, setuid ones included."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def _set_capabilities(*, inheritable: bool) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    held = (ctypes.c_uint32 * 6)()
    succeed(libc.capget(header, held), "capget")
    permitted = held[1] & _KEPT
    # Effective, permitted, inheritable; then the same of the upper half, of which none is kept.
    wanted = (permitted, permitted, permitted if inheritable else 0, 0, 0, 0)
    succeed(libc.capset(header, (ctypes.c_uint32 * 6)(*wanted)), "capset")
