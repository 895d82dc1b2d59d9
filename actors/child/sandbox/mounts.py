"""The level `mount`: the file system as a child sees it, in a mount namespace of its own.

All of it is read-only, its own folders excepted. The folders of other candidates look empty;
scratch and `/dev/shm` are memory, bounded, and gone with the last of its processes.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from kopt.actors.child.sandbox.kernel import SYS_MOUNT_SETATTR, libc, succeed

SCRATCH_BYTES = 2 << 30
SHARED_MEMORY_BYTES = 2 << 30
MAX_SCRATCH_FILES = 100_000

_RDONLY, _NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_PROCESSES, _SHARED_MEMORY = "/proc", "/dev/shm"
_KERNEL_FILES = ("acpi", "asound", "bus", "fs", "irq", "mtrr", "scsi", "sys", "sysrq-trigger")
"""Below /proc: what sets the kernel and not a process."""


class _Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns"))


def keep_mounts_private() -> None:
    """Have mounts made from now on stay in the namespace.

    Raises:
        OSError: the kernel refuses.
    """
    _mount("none", "/", "", _REC | _PRIVATE)


def mount_own_processes() -> None:
    """Show the processes of the PID namespace in /proc, and no others.

    What a container has mounted below /proc stays: it hides parts of the kernel, and tells the
    driver which GPUs there are.

    Raises:
        OSError: the kernel refuses, as it does where a container hides parts of /proc from a user
            who is not root.
    """
    kept = _opened(_mount_points_below(_PROCESSES), flags=0)
    _mount("proc", _PROCESSES, "proc", _NOSUID | _NODEV | _NOEXEC)
    _seal_kernel_files()
    for path, fd in kept.items():
        with suppress(OSError):  # a place that this /proc does not have
            _mount(f"/proc/self/fd/{fd}", path, "", _BIND)
        os.close(fd)


def show_own_files(
    *,
    scratch: str,
    writable: Sequence[str],
    discarded: Sequence[str],
    emptied: Iterable[str] = (),
    hidden: Iterable[str],
) -> None:
    """Make the file system read-only but for the caller's own folders.

    Args:
        scratch: its scratch folder; siblings disappear.
        writable: folders that stay as they are and can be written.
        discarded: folders of which it sees a copy that it can write and that goes with it.
        emptied: folders that look empty, that it can write, and whose content goes with it.
        hidden: folders that look empty, but for what of its own lies in them.

    Raises:
        OSError: the kernel refuses; the caller's namespace is then of no use.
    """
    kept, copied = _opened(writable), _opened(discarded)
    _seal_kernel_files()
    _set_attributes("/", _Attributes(set=_RDONLY), recursive=True)
    # A GPU's driver names its threads there, and gives up where it cannot.
    _set_attributes(_PROCESSES, _Attributes(clear=_RDONLY), recursive=False)
    for path in hidden:
        if os.path.isdir(path):
            _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    for path in emptied:
        _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV, f"size={SCRATCH_BYTES},mode=755")
    Path(scratch).parent.mkdir(parents=True, exist_ok=True)
    options = f"size={SCRATCH_BYTES},nr_inodes={MAX_SCRATCH_FILES},mode=755"
    _mount("tmpfs", str(Path(scratch).parent), "tmpfs", _NOSUID | _NODEV, options)
    Path(scratch).mkdir(mode=0o700)
    for path, fd in kept.items():
        Path(path).mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{fd}", path, "", _BIND)
        _set_attributes(path, _Attributes(clear=_RDONLY), recursive=False)
        os.close(fd)
    for path, fd in copied.items():
        Path(path).mkdir(parents=True, exist_ok=True)
        _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV, f"size={SCRATCH_BYTES},mode=755")
        shutil.copytree(f"/proc/self/fd/{fd}", path, symlinks=True, dirs_exist_ok=True)
        os.close(fd)
    if os.path.isdir(_SHARED_MEMORY):
        options = f"size={SHARED_MEMORY_BYTES},mode=1777"
        _mount("tmpfs", _SHARED_MEMORY, "tmpfs", _NOSUID | _NODEV, options)


def _seal_kernel_files() -> None:
    """Make what is below /proc and no process's read-only, whoever owns it."""
    for path in (f"{_PROCESSES}/{name}" for name in _KERNEL_FILES):
        if os.path.exists(path):
            _mount(path, path, "", _BIND | _REC)
            _set_attributes(path, _Attributes(set=_RDONLY), recursive=True)


def _opened(paths: Sequence[str], *, flags: int = os.O_DIRECTORY) -> dict[str, int]:
    return {path: os.open(path, os.O_PATH | os.O_CLOEXEC | flags) for path in paths}


def _mount_points_below(folder: str) -> list[str]:
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    places = [line.split()[1].encode().decode("unicode_escape") for line in lines]
    return list(dict.fromkeys(place for place in places if place.startswith(f"{folder}/")))


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    words = (source.encode(), os.fsencode(target), kind.encode(), flags, options.encode())
    succeed(libc.mount(*words), f"mount {kind or source} on {target}")


def _set_attributes(path: str, attributes: _Attributes, *, recursive: bool) -> None:
    result = libc.syscall(
        SYS_MOUNT_SETATTR,
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.c_uint(_AT_RECURSIVE if recursive else 0),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    succeed(result, f"mount_setattr {path}")
