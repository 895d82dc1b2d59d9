"""The level `cgroup`: a control group (version 2) for each child, with memory and tasks bounded.

Groups are made below our own or beside it, wherever both controllers are on and we may write. A
container seldom allows it; a service with `Delegate=yes` and root on a host do.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_CONTROLLERS = {"memory", "pids"}
_PREFIX = "kopt-"


def groups_folder(*, root: Path = ROOT, own: str | None = None) -> Path:
    """Return the folder in which groups can be made.

    Args:
        root: where version 2 is mounted.
        own: our group, as in /proc/self/cgroup; None reads it there.

    Raises:
        OSError: there is none.
    """
    if not (root / "cgroup.controllers").exists():
        raise OSError(errno.ENOENT, f"no control groups of version 2 at {root}")
    mine = root / (_own_group() if own is None else own).lstrip("/")
    for folder in dict.fromkeys((mine, mine.parent if mine != root else mine)):
        try:
            text = (folder / "cgroup.subtree_control").read_text(encoding="ascii")
        except OSError:
            continue
        writable = os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)
        if set(text.split()) >= _CONTROLLERS and writable:
            return folder
    raise OSError(errno.EACCES, f"no group with memory and pids on, and writable, at {mine}")


def enter_group(folder: Path, *, name: str, memory_bytes: int | None, max_processes: int) -> None:
    """Make a group with limits and move the calling process into it.

    Raises:
        OSError: the kernel refuses.
    """
    group = folder / f"{_PREFIX}{name}"
    group.mkdir()
    _write(group / "pids.max", max_processes)
    if memory_bytes is not None:
        _write(group / "memory.max", memory_bytes)
        with suppress(OSError):  # a kernel without swap accounting
            _write(group / "memory.swap.max", 0)
    _write(group / "memory.oom.group", 1)
    _write(group / "cgroup.procs", os.getpid())


def remove_group(folder: Path, *, name: str) -> None:
    """Remove a group whose processes are gone; one that is not there is no error."""
    with suppress(OSError):
        (folder / f"{_PREFIX}{name}").rmdir()


def remove_stale_groups(folder: Path) -> None:
    """Remove the empty groups that zygotes which no longer run have left."""
    for group in folder.glob(f"{_PREFIX}*"):
        maker = group.name.removeprefix(_PREFIX).split("-")[0]
        if not Path(f"/proc/{maker}").exists():
            with suppress(OSError):
                group.rmdir()


def _write(path: Path, value: int) -> None:
    path.write_text(str(value), encoding="ascii")


def _own_group() -> str:
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::")
    raise OSError(errno.ENOENT, "no control group of version 2")
