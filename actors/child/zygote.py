"""The zygote: a process with torch imported and no device touched, from which children are forked.

Fork costs a tenth of a second where a fresh interpreter with torch costs seconds. It runs no torch
operation of its own (a parallel region before a fork would leave the child's OpenMP broken) and
has one thread. Orphans of a child become its own children and are killed with it.

Run as `python -m kopt.actors.child.zygote FD LEVELS [WORD …]`, FD a connected socket, with words
that say what is loaded ahead (preload.py); see kopt.actors.supervisor.zygote. Its first message is
`ready`, or `refused` where what it loaded leaves it of no use.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kopt.actors.child.channel import Channel, ChannelClosed
from kopt.actors.child.sandbox.cgroups import (
    groups_folder,
    remove_group,
    remove_stale_groups,
)
from kopt.actors.child.sandbox.confine import Confinement, confine
from kopt.actors.child.sandbox.levels import LevelName, wanted_levels
from kopt.actors.child.sandbox.namespaces import enter_user_namespace
from kopt.actors.child.sandbox.privileges import adopt_orphans, conceal
from kopt.actors.child.sandbox.probe import unavailable

KILL_S = 5.0
"""Seconds to wait for a killed process to be gone."""
LOOK_S = 0.002
"""Between two looks at one that is going, where nobody else is served meanwhile."""


@dataclass(slots=True)
class _Ending:
    """A child that is being ended."""

    began_s: float
    status: int | None = None
    """Its exit status once it is gone, negative for a signal."""
    gone_s: float = 0.0
    """When it was."""


class Zygote:
    """Forks children on order, and ends them with everything they started."""

    def __init__(self, channel: Channel, *, levels: tuple[LevelName, ...]) -> None:
        """Serve this channel; children are confined by these levels."""
        self._channel = channel
        self._levels = levels
        self._groups = groups_folder() if "cgroup" in levels else None
        if self._groups is not None:
            remove_stale_groups(self._groups)
        self._children: set[int] = set()
        self._endings: dict[int, _Ending] = {}

    def serve(self) -> None:
        """Answer orders until the supervisor is gone."""
        while True:
            try:
                order, fds = self._channel.receive()
            except ChannelClosed:
                self._end_all()
                return
            if order["op"] == "spawn":
                self._channel.send({"pid": self._spawn(order, fds)})
            elif order["op"] == "end":
                status = self._end(int(order["pid"]))
                self._channel.send({"going": True} if status is None else {"status": status})
            else:
                raise ValueError(f"unknown order {order['op']!r}")

    def _spawn(self, order: dict[str, Any], fds: list[int]) -> int:
        talk, output = fds
        pid = os.fork()
        if pid == 0:
            self._become_child(order, talk, output)
        self._children.add(pid)
        os.close(talk)
        os.close(output)
        return pid

    def _become_child(self, order: dict[str, Any], talk: int, output: int) -> None:
        """Turn this fork into a child; never returns."""
        code = 1
        try:
            self._channel.close()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(null)
            os.close(output)
            os.environ.clear()
            os.environ.update(order["environment"])
            tempfile.tempdir = None  # imports asked for the zygote's, where a child may not write
            wanted = Confinement.from_json(order["confinement"])
            sandbox = confine(wanted, levels=self._levels, group=_group(os.getppid(), os.getpid()))
            from kopt.actors.child.runner import Runner

            channel = Channel(socket.socket(fileno=talk))
            Runner(channel, sandbox=sandbox, settings=order["settings"]).serve()
            code = 0
        except BaseException:  # noqa: BLE001 - the process boundary: the words go to the pipe
            traceback.print_exc()
        finally:
            os._exit(code)

    def _end(self, pid: int) -> int | None:
        """Kill a child's group and every orphan, and look whether they are gone.

        Nothing is waited for: a kernel that hangs keeps its process for seconds, in which others
        are to be forked.

        Returns:
            Its exit status (negative: signal); None while it is going, to be asked for again.
        """
        if pid not in self._children:
            return 0
        ending = self._endings.setdefault(pid, _Ending(time.monotonic()))
        if ending.status is None:
            ending.status = self._reaped(pid, since_s=ending.began_s)
            ending.gone_s = time.monotonic()
        if ending.status is None:
            return None
        if self._sweep() and time.monotonic() < ending.gone_s + KILL_S:
            return None
        self._children.discard(pid)
        del self._endings[pid]
        if self._groups is not None:
            remove_group(self._groups, name=_group(os.getpid(), pid))
        return ending.status

    def _reaped(self, pid: int, *, since_s: float) -> int | None:
        """End a child of ours; its status once it is gone. One that ended by itself keeps its own.

        A guard is asked to: it kills what it guards, and ends as that ended. Otherwise the whole
        process group is killed.
        """
        guarded = "pid" in self._levels
        waited, status = os.waitpid(pid, os.WNOHANG)
        if waited:
            if not guarded:
                _kill_group(pid)
            return os.waitstatus_to_exitcode(status)
        late_s = time.monotonic() - since_s
        if guarded and late_s < KILL_S:
            _signal(pid, signal.SIGTERM)
        else:
            _kill_group(pid)
        return -signal.SIGKILL if late_s > (2 if guarded else 1) * KILL_S else None

    def _end_all(self) -> None:
        """Kill every child with what it started: the supervisor closed, or was killed."""
        for pid in list(self._children):
            self._end(pid)
        for pid in list(self._children):
            while self._end(pid) is None:
                time.sleep(LOOK_S)
        deadline_s = time.monotonic() + KILL_S
        while self._sweep() and time.monotonic() < deadline_s:
            time.sleep(LOOK_S)

    def _sweep(self) -> bool:
        """Kill what became ours without having been forked by us; say whether any is left."""
        strays = [pid for pid in _children_of(os.getpid()) if pid not in self._children]
        for pid in strays:
            _signal(pid, signal.SIGKILL)
        gone = [_is_gone(pid) for pid in strays]  # each is looked after, whatever the others do
        return not all(gone)


def _group(zygote: int, child: int) -> str:
    return f"{zygote}-{child}"


def _is_gone(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _children_of(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children")
    if children.exists():
        return [int(pid) for pid in children.read_text(encoding="ascii").split()]
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()
        except OSError:
            continue  # ended meanwhile
        if int(fields[1]) == parent:
            found.append(int(entry.parent.name))
    return found


def main() -> None:
    """Import what every child needs, then serve.

    A supervisor that dies is noticed by the end of its channel. A signal at its death would end
    this process before it could end what its children left behind.
    """
    adopt_orphans()
    levels = _available(sys.argv[2])
    conceal()
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    from kopt.actors.child.preload import Preload

    refused = Preload.from_words(sys.argv[3:]).load()
    if refused:
        channel.send({"refused": refused})
        return
    channel.send({"ready": os.getpid()})
    Zygote(channel, levels=levels).serve()
    os._exit(0)  # taking all that was loaded apart again takes a second, for which somebody waits


def _available(stated: str) -> tuple[LevelName, ...]:
    """The levels that children get. While there is one thread: a user namespace asks for that."""
    why = unavailable(wanted_levels(stated))
    levels = tuple(level for level, reason in why.items() if not reason)
    if "namespace" in levels and os.geteuid() != 0:
        enter_user_namespace()
    return levels


if __name__ == "__main__":
    main()
