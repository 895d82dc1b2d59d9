"""The level `landlock`: files can be written below given folders alone, whoever owns them.

Reading and running are not restricted: compilers, libraries and drivers lie anywhere. Version 2
(Linux 5.19) is the least that is of use: before it no file can be renamed into another folder,
as Triton's cache does.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable
from pathlib import Path

from kopt.actors.child.sandbox.kernel import (
    SYS_LANDLOCK_ADD_RULE,
    SYS_LANDLOCK_CREATE_RULESET,
    SYS_LANDLOCK_RESTRICT_SELF,
    libc,
    succeed,
)

LEAST_VERSION = 2
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_WRITE_FILE, _TRUNCATE, _REFER = 1 << 1, 1 << 14, 1 << 13
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 13))
"""Make and remove entries, of every kind."""
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/shm")
GPU_DEVICES = ("nvidia*", "dri", "kfd")
"""Below /dev; those of a GPU are files that are opened for writing."""
THREADS = "/proc/self/task"
"""A GPU's driver names its threads there, and gives up where it cannot."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def landlock_version() -> int:
    """Return the kernel's version of Landlock; asking changes nothing.

    Raises:
        OSError: it has none.
    """
    none = ctypes.c_void_p(None)
    size = ctypes.c_size_t(0)
    found = libc.syscall(SYS_LANDLOCK_CREATE_RULESET, none, size, _CREATE_RULESET_VERSION)
    return succeed(found, "no Landlock")


def devices() -> list[str]:
    """Return the files that a child may write to: devices, and the names of its own threads."""
    gpu = [str(path) for pattern in GPU_DEVICES for path in sorted(Path("/dev").glob(pattern))]
    return [path for path in (*DEVICES, *gpu, THREADS) if os.path.exists(path)]


def write_only_below(paths: Iterable[str]) -> None:
    """Forbid the calling process, for good, to change files that are not below these paths.

    From version 4 on TCP is forbidden too, from version 6 on signals to processes outside.

    Raises:
        OSError: the kernel has no Landlock, or too old a one.
    """
    version = landlock_version()
    if version < LEAST_VERSION:
        raise OSError(errno.ENOSYS, f"Landlock version {version}; {LEAST_VERSION} is the least")
    on_files = _WRITE_FILE | (_TRUNCATE if version >= 3 else 0)
    on_folders = on_files | _CHANGE_FOLDER | _REFER
    ruleset = _Ruleset(
        on_folders,
        _BIND_TCP | _CONNECT_TCP if version >= 4 else 0,
        _ABSTRACT_SOCKETS | _SIGNALS if version >= 6 else 0,
    )
    size = ctypes.c_size_t(8 if version < 4 else 16 if version < 6 else 24)
    created = libc.syscall(SYS_LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    rules = succeed(created, "landlock_create_ruleset")
    try:
        for path in paths:
            _allow(rules, path, on_folders if os.path.isdir(path) else on_files)
        succeed(libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, rules, 0), "landlock_restrict_self")
    finally:
        os.close(rules)


def _allow(rules: int, path: str, access: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if path == THREADS:  # the rule holds for as long as the kernel remembers this very entry
        _add_rule(rules, path, access, fd=fd)
        return
    try:
        _add_rule(rules, path, access, fd=fd)
    finally:
        os.close(fd)


def _add_rule(rules: int, path: str, access: int, *, fd: int) -> None:
    rule = _PathBeneath(access, fd)
    added = libc.syscall(SYS_LANDLOCK_ADD_RULE, rules, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    succeed(added, f"landlock_add_rule {path}")
