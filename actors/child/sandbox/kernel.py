"""Calls to the kernel that Python's library lacks, through ctypes."""

from __future__ import annotations

import ctypes
import os
import platform
from dataclasses import dataclass

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

SYS_MOUNT_SETATTR = 442
SYS_LANDLOCK_CREATE_RULESET = 444
SYS_LANDLOCK_ADD_RULE = 445
SYS_LANDLOCK_RESTRICT_SELF = 446
"""Numbers above 423 are the same on every processor."""

libc = ctypes.CDLL(None, use_errno=True)
libc.mount.argtypes = (
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_ulong,
    ctypes.c_char_p,
)
libc.syscall.restype = ctypes.c_long


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A processor's system calls, as far as a filter has to know them."""

    audit_arch: int
    """What the kernel gives a filter for calls of this processor's own kind."""
    seccomp: int
    socket: int
    clone: int
    clone3: int
    refused: tuple[int, ...]
    """Calls that no kernel needs: see `REFUSED`."""


REFUSED = {  # name: (x86_64, aarch64); -1 where there is none
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, -1),
    "iopl": (172, -1),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
"""System calls that let a process look into others, change the machine, or go round a filter."""


def machine() -> Machine | None:
    """Return this processor's table; None where there is none."""
    column = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
    if column is None:
        return None
    return Machine(
        audit_arch=(0xC000003E, 0xC00000B7)[column],
        seccomp=(317, 277)[column],
        socket=(41, 198)[column],
        clone=(56, 220)[column],
        clone3=435,
        refused=tuple(each[column] for each in REFUSED.values() if each[column] >= 0),
    )


def succeed(result: int, what: str) -> int:
    """Return what a call gave.

    Raises:
        OSError: it failed; `what` names it.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(option: int, first: int = 0, second: int = 0) -> None:
    """Set an attribute of the calling process.

    Raises:
        OSError: the kernel refuses.
    """
    arguments = (ctypes.c_ulong(each) for each in (first, second, 0, 0))
    succeed(libc.prctl(option, *arguments), f"prctl({option})")


def unshare(flags: int, *, what: str) -> None:
    """Leave namespaces for new ones.

    Raises:
        OSError: the kernel refuses.
    """
    succeed(libc.unshare(flags), f"no {what}")
