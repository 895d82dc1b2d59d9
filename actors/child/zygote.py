"""The zygote: a process with torch imported and no device touched, from which children are forked.

Fork costs a tenth of a second where a fresh interpreter with torch costs seconds. It runs no torch
operation of its own (a parallel region before a fork would leave the child's OpenMP broken) and
has one thread. Orphans of a child become its own children and are killed with it.

Run as `python -m kopt.actors.child.zygote FD LEVELS [compile]`, FD a connected socket; see
kopt.actors.supervisor.zygote.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
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
                self._channel.send({"status": self._end(int(order["pid"]))})
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

    def _end(self, pid: int) -> int:
        """Kill a child's group and every orphan; return its exit status (negative: signal)."""
        status = 0
        if pid in self._children:
            status = _reap(pid, guarded="pid" in self._levels)
            self._children.discard(pid)
        self._sweep()
        if self._groups is not None:
            remove_group(self._groups, name=_group(os.getpid(), pid))
        return status

    def _end_all(self) -> None:
        """Kill every child with what it started: the supervisor closed, or was killed."""
        for pid in list(self._children):
            self._end(pid)
        self._sweep()

    def _sweep(self) -> None:
        """Kill what became ours without having been forked by us."""
        deadline_s = time.monotonic() + KILL_S
        while time.monotonic() < deadline_s:
            strays = [pid for pid in _children_of(os.getpid()) if pid not in self._children]
            if not strays:
                return
            for pid in strays:
                _kill(pid)
                _wait(pid)


def _group(zygote: int, child: int) -> str:
    return f"{zygote}-{child}"


def _reap(pid: int, *, guarded: bool) -> int:
    """End a child of ours and return its status; one that ended by itself keeps its own.

    A guard is asked to: it kills what it guards, and ends as that ended. Otherwise the whole
    process group is killed.
    """
    waited, status = os.waitpid(pid, os.WNOHANG)
    if waited == 0 and guarded:
        os.kill(pid, signal.SIGTERM)
        waited, status = _wait(pid)
    if waited == 0 or not guarded:
        _kill_group(pid)
    if waited == 0:
        waited, status = _wait(pid)
    return os.waitstatus_to_exitcode(status) if waited else -signal.SIGKILL


def _wait(pid: int) -> tuple[int, int]:
    """Wait for a child of ours to be gone, for KILL_S at most."""
    deadline_s = time.monotonic() + KILL_S
    waited, status = os.waitpid(pid, os.WNOHANG)
    while waited == 0 and time.monotonic() < deadline_s:
        time.sleep(0.002)
        waited, status = os.waitpid(pid, os.WNOHANG)
    return waited, status


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        _kill(pid)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


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
    import torch

    if "compile" in sys.argv[3:]:  # a child that compiles finds the compiler loaded
        import torch._inductor.codegen.cpp
        import torch._inductor.codegen.cpp_wrapper_gpu
        import torch._inductor.codegen.cuda_combined_scheduling
        import torch._inductor.compile_fx
        import torch._inductor.fx_passes.efficient_conv_bn_eval
        import torch._inductor.fx_passes.fuse_attention
        import torch._inductor.fx_passes.pad_mm

    import kopt.actors.child.runner  # noqa: F401 - loaded once, for every child

    if torch.version.cuda is not None:
        with suppress(ImportError):  # Triton candidates will say so themselves
            import triton  # noqa: F401 - loaded once, for every child
    channel.send({"ready": os.getpid()})
    Zygote(channel, levels=levels).serve()


def _available(stated: str) -> tuple[LevelName, ...]:
    """The levels that children get. While there is one thread: a user namespace asks for that."""
    why = unavailable(wanted_levels(stated))
    levels = tuple(level for level, reason in why.items() if not reason)
    if "namespace" in levels and os.geteuid() != 0:
        enter_user_namespace()
    return levels


if __name__ == "__main__":
    main()
