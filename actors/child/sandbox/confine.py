"""Confining a process: every level that is available, in the one order in which they compose.

Namespaces come first (they need privileges), then what is mounted, then limits; privileges go
last but for Landlock and the filter of system calls, which need none and bind everything after.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kopt.actors.child.sandbox.cgroups import enter_group, groups_folder
from kopt.actors.child.sandbox.landlock import devices, write_only_below
from kopt.actors.child.sandbox.levels import LevelName, joined
from kopt.actors.child.sandbox.limits import (
    die_first,
    limit_process,
    limit_processes,
    max_processes,
)
from kopt.actors.child.sandbox.mounts import mount_own_processes, show_own_files
from kopt.actors.child.sandbox.namespaces import enter_namespaces, split_from_guard
from kopt.actors.child.sandbox.privileges import (
    die_with_parent,
    forbid_new_privileges,
    renounce,
    user_for,
)
from kopt.actors.child.sandbox.seccomp import filter_calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a child may have."""

    scratch: str
    """Its own folder, made and empty, in a folder that holds scratch folders alone."""
    writable: tuple[str, ...] = ()
    """Folders that exist, in which it may write."""
    discarded: tuple[str, ...] = ()
    """The same, but what it writes goes with it, where the level `mount` is in force."""
    emptied: tuple[str, ...] = ()
    """Folders that look empty, in which it may write, and what it writes goes with it; only where
    the level `mount` is in force."""
    hidden: tuple[str, ...] = ()
    """Folders whose content is not for it, but for what is writable."""
    memory_bytes: int | None = None
    """Host memory it may map beyond what it maps when it is forked; None for no limit."""
    by_data: bool = False
    """Count private writable memory alone: CUDA and compilers map much more than they use."""
    cpu_s: int | None = None
    """Seconds of processor time; None for no limit."""

    def to_json(self) -> dict[str, Any]:
        """Return the form that `from_json` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Confinement:
        """Return the confinement of its JSON form."""
        names = ("writable", "discarded", "emptied", "hidden")
        folders = {name: tuple(value[name]) for name in names}
        return cls(**{**value, **folders})


def confine(wanted: Confinement, *, levels: Sequence[LevelName], group: str) -> str:
    """Confine the calling process, for good, and go to its scratch folder.

    With the level `pid` it returns in a grandchild, and the caller ends as that one ends.

    Args:
        wanted: what it may have.
        levels: that are available (see `probe`).
        group: name of its control group.

    Returns:
        The levels in force, joined by `+`.

    Raises:
        OSError: a level that was available is refused.
    """
    os.setsid()
    die_with_parent()
    die_first()
    number = max_processes()
    if "cgroup" in levels:
        enter_group(
            groups_folder(), name=group, memory_bytes=wanted.memory_bytes, max_processes=number
        )
    user = user_for(os.getpid()) if "user" in levels else None
    if "namespace" in levels:
        enter_namespaces(with_pid="pid" in levels)
    if "pid" in levels:
        split_from_guard()
        mount_own_processes()
    if "mount" in levels:
        show_own_files(
            scratch=wanted.scratch,
            writable=wanted.writable,
            discarded=wanted.discarded,
            emptied=wanted.emptied,
            hidden=wanted.hidden,
        )
    if user is not None:
        os.chown(wanted.scratch, user, user)
    os.chdir(wanted.scratch)
    limit_process(memory_bytes=wanted.memory_bytes, by_data=wanted.by_data, cpu_s=wanted.cpu_s)
    renounce(user=user)
    die_with_parent()  # again: a change of user undoes it
    if os.geteuid() != 0:
        limit_processes(number, counted_alone=user is not None or "namespace" in levels)
    forbid_new_privileges()
    if "landlock" in levels:
        own = (wanted.scratch, *wanted.writable, *wanted.discarded)
        emptied = wanted.emptied if "mount" in levels else ()
        write_only_below([*own, *emptied, *devices()])
    if "seccomp" in levels:
        filter_calls()
    return joined(levels)
