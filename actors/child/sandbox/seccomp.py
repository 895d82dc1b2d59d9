"""The level `seccomp`: a filter of system calls, a few dozen instructions that the kernel runs.

Sockets of every family but AF_UNIX are refused (AF_VSOCK goes round network namespaces), and so is
what `kernel.REFUSED` lists. Calls that a filter can let pass whatever their arguments are cost
nothing: the kernel remembers them.
"""

from __future__ import annotations

import ctypes
import errno
import socket
from typing import NamedTuple

from kopt.actors.child.sandbox.kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    Machine,
    libc,
    machine,
    succeed,
)

_CLONE_NEWCGROUP, _CLONE_NEWUTS = 0x02000000, 0x04000000
NEW_NAMESPACES = (
    CLONE_NEWNS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET
    | _CLONE_NEWCGROUP
    | _CLONE_NEWUTS
)

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AT_NUMBER, _AT_ARCH, _AT_FIRST_ARGUMENT = 0, 4, 16
"""Offsets in what the kernel hands to a filter; the low half of an argument comes first."""
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000
_X32 = 0x40000000
"""Calls of x86's other kind, which have the same architecture and numbers from here."""
_SET_MODE_FILTER = 1
_WITHOUT_SLOWDOWN = 1 << 2
"""SECCOMP_FILTER_FLAG_SPEC_ALLOW: older kernels make all code of a filtered process slower."""


class Instruction(NamedTuple):
    """One of the filter: on a test, how many to skip where it holds and where not."""

    code: int
    operand: int
    if_true: int = 0
    if_false: int = 0


def program(table: Machine) -> list[Instruction]:
    """Return the filter for a processor."""
    made = [
        Instruction(_LOAD, _AT_ARCH),
        *_when(_EQUAL, table.audit_arch, None, otherwise=errno.EPERM),
        Instruction(_LOAD, _AT_NUMBER),
        *_when(_AT_LEAST, _X32, errno.ENOSYS),
        # Its flags lie in memory, out of a filter's sight; the C library falls back to clone.
        *_when(_EQUAL, table.clone3, errno.ENOSYS),
    ]
    for number in table.refused:
        made += _when(_EQUAL, number, errno.EPERM)
    for number, test in (
        (table.socket, _when(_EQUAL, socket.AF_UNIX, None, otherwise=errno.EAFNOSUPPORT)),
        (table.clone, _when(_ANY_BIT, NEW_NAMESPACES, errno.EPERM)),
    ):
        body = [Instruction(_LOAD, _AT_FIRST_ARGUMENT), *test, Instruction(_RETURN, _ALLOW)]
        made += [Instruction(_EQUAL, number, 0, len(body)), *body]
    return [*made, Instruction(_RETURN, _ALLOW)]


def _when(
    test: int, operand: int, refuse: int | None, *, otherwise: int | None = None
) -> list[Instruction]:
    """Refuse with an error number where a test of what was loaded holds, or where it does not."""
    if refuse is not None:
        return [Instruction(test, operand, 0, 1), Instruction(_RETURN, _REFUSE | refuse)]
    assert otherwise is not None
    return [Instruction(test, operand, 1, 0), Instruction(_RETURN, _REFUSE | otherwise)]


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Filter)))


def filter_calls() -> None:
    """Put the filter on the calling process, which has one thread and forgone new privileges.

    Raises:
        OSError: the kernel has no filters, or this processor no table.
    """
    table = machine()
    if table is None:
        raise OSError(errno.ENOSYS, "no table of this processor's system calls")
    instructions = program(table)
    filters = (_Filter * len(instructions))(
        *(_Filter(each.code, each.if_true, each.if_false, each.operand) for each in instructions)
    )
    made = _Program(len(instructions), filters)
    succeed(
        libc.syscall(table.seccomp, _SET_MODE_FILTER, _WITHOUT_SLOWDOWN, ctypes.byref(made)),
        "seccomp",
    )
