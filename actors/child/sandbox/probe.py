"""Which levels are available: each is tried in a process of its own that ends with the trial.

Run as `python -m kopt.actors.child.sandbox.probe` it prints one JSON object, level to reason, the
reason empty where the level is available.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from kopt.actors.child.sandbox.cgroups import groups_folder
from kopt.actors.child.sandbox.landlock import devices, write_only_below
from kopt.actors.child.sandbox.levels import LEVELS, LevelName
from kopt.actors.child.sandbox.mounts import mount_own_processes, show_own_files
from kopt.actors.child.sandbox.namespaces import enter_namespaces, enter_user_namespace
from kopt.actors.child.sandbox.privileges import (
    forbid_new_privileges,
    has_user,
    renounce,
    user_for,
)
from kopt.actors.child.sandbox.seccomp import filter_calls

MAX_WHY_BYTES = 4_096


def unavailable(levels: Iterable[LevelName] = LEVELS) -> dict[LevelName, str]:
    """Return, for each of these levels, why it is not available: empty where it is.

    Args:
        levels: in order; one that stands on another is not tried where that one failed.
    """
    found: dict[LevelName, str] = {}
    for level in levels:
        if level == "process":
            found[level] = ""
        elif level in ("pid", "mount") and found.get("namespace"):
            found[level] = found["namespace"]
        else:
            found[level] = _tried(_TRIALS[level])
    return found


def _tried(trial: Callable[[], None]) -> str:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            trial()
        except Exception as error:  # noqa: BLE001 - the process boundary: why goes to the pipe
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            os.write(write_end, why.encode()[:MAX_WHY_BYTES])
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        why = pipe.read(MAX_WHY_BYTES).decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    return why or ("" if status == 0 else f"the trial ended with status {status}")


def _user() -> None:
    if os.geteuid() != 0:
        raise OSError("only root can start processes of another user")
    user = user_for(os.getpid())
    if not has_user(user):
        raise OSError(f"user {user} does not exist in this container")
    renounce(user=user)


def _namespaces(*, with_pid: bool = False) -> None:
    if os.geteuid() != 0:
        enter_user_namespace()
    enter_namespaces(with_pid=with_pid)


def _pid() -> None:
    _namespaces(with_pid=True)
    why = _tried(mount_own_processes)
    if why:
        raise OSError(why)


def _mount() -> None:
    folder = Path(tempfile.mkdtemp(prefix="kopt-"))
    try:
        for name in ("root/scratch", "cache/own"):
            (folder / name).mkdir(parents=True)
        why = _tried(lambda: _try_mount(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if why:
        raise OSError(why)


def _try_mount(folder: Path) -> None:
    _namespaces()
    own = folder / "cache" / "own"
    show_own_files(
        scratch=str(folder / "root" / "scratch"),
        writable=[str(own)],
        discarded=[],
        hidden=[str(folder / "cache")],
    )
    (own / "written").touch()


def _landlock() -> None:
    forbid_new_privileges()
    write_only_below(devices())


def _seccomp() -> None:
    forbid_new_privileges()
    filter_calls()


def _cgroup() -> None:
    groups_folder()


_TRIALS: dict[LevelName, Callable[[], None]] = {
    "user": _user,
    "namespace": _namespaces,
    "pid": _pid,
    "mount": _mount,
    "landlock": _landlock,
    "seccomp": _seccomp,
    "cgroup": _cgroup,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(unavailable()) + "\n")
