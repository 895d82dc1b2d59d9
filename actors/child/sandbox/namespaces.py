"""The levels `namespace` and `pid`: a network, queues, mounts and processes of one's own.

With a PID namespace a child is three processes:

    zygote - guard - first (1 in the namespace, adopts and reaps)
                   - child (2 in the namespace, the one that is confined)

The guard is outside: nothing in the namespace can see or signal it. It ends as the child ended, so
that whoever waits for it learns of the child's signal. When the first process dies, the kernel
kills every other of the namespace; it dies with the guard, and the guard with the zygote.
"""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from kopt.actors.child.sandbox.kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    unshare,
)
from kopt.actors.child.sandbox.mounts import keep_mounts_private
from kopt.actors.child.sandbox.privileges import die_with_parent


def enter_user_namespace() -> None:
    """Enter a user namespace in which the caller is who it was, with power over what it makes.

    For a process of one thread that is not root's: root needs none.

    Raises:
        OSError: the kernel refuses.
    """
    user, group = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER, what="user namespace")
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny", encoding="ascii")
    (own / "uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    (own / "gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def enter_namespaces(*, with_pid: bool) -> None:
    """Leave the network, the queues and the mounts; with_pid, what is forked next is a namespace.

    Raises:
        OSError: the kernel refuses.
    """
    flags = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | (CLONE_NEWPID if with_pid else 0)
    unshare(flags, what="namespaces")
    keep_mounts_private()


def split_from_guard() -> None:
    """Return in the second process of the namespace; the caller guards it and never returns."""
    held = [int(fd) for fd in os.listdir("/proc/self/fd")]  # later /proc shows the child's alone
    first = os.fork()
    if first == 0:
        _be_first(held)
    second = os.fork()
    if second != 0:
        _guard(first, second, held)
    die_with_parent()
    os.setsid()


def _let_go(held: list[int]) -> None:
    """Close what the child talks by: its end is the end of the conversation."""
    for fd in held:
        with suppress(OSError):  # the listing's own
            os.close(fd)


def _be_first(held: list[int]) -> NoReturn:
    die_with_parent()
    _let_go(held)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps what it adopts
    while True:
        signal.pause()


def _guard(first: int, second: int, held: list[int]) -> NoReturn:
    def end(_number: int, _frame: FrameType | None) -> None:
        os.kill(first, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    _let_go(held)
    _, status = os.waitpid(second, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)  # ends once every process of the namespace has
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(max(code, 0))
