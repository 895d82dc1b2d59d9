"""Registers, stack and spills of each kernel, by the compiler: `cuobjdump -res-usage`, ptxas -v.

The first shows a stack for spills and for local arrays alike; only ptxas tells spilled bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kopt.tools.collect.unreadable import MAX_KERNELS, UnreadableProfile, bounded

SOURCE = "resource usage"

_RES_FUNCTION = re.compile(r"^\s*Function\s+(\S+?):\s*$")
_RES_USAGE = re.compile(r"\bREG:(?P<registers>\d+)\s+STACK:(?P<stack>\d+)\s+SHARED:(?P<shared>\d+)")
_PTXAS_FUNCTION = re.compile(r"(?:Compiling entry function '|Function properties for '?)([^\s']+)")
_PTXAS_SPILLS = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads"
)
_PTXAS_USED = re.compile(r"Used (?P<registers>\d+) registers(?:.*?(?P<shared>\d+) bytes smem)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one kernel uses; None where it was not said."""

    name: str
    """As the binary has it, mangled."""
    registers: int | None = None
    stack_bytes: int | None = None
    """Local memory of a thread, spills and arrays."""
    spill_bytes: int | None = None
    """Spill stores and loads in the binary."""
    smem_bytes: int | None = None
    """Static shared memory of a block."""


def parse_usage(text: str) -> tuple[Usage, ...]:
    """Return what each kernel uses; both forms may stand in one text.

    Args:
        text: output of `cuobjdump -res-usage`, or of ptxas or nvcc with `-v`.

    Raises:
        UnreadableProfile: nothing of the kind is in it.
    """
    found: dict[str, Usage] = {}
    name = ""
    for line in bounded(text, source=SOURCE).splitlines():
        named = _RES_FUNCTION.match(line) or _PTXAS_FUNCTION.search(line)
        if named is not None:
            name = named[1]
        if not name:
            continue
        usage = found.get(name, Usage(name=name))
        resources = _RES_USAGE.search(line)
        spills = _PTXAS_SPILLS.search(line)
        used = _PTXAS_USED.search(line)
        if resources is not None:
            usage = replace(
                usage,
                registers=int(resources["registers"]),
                stack_bytes=int(resources["stack"]),
                smem_bytes=int(resources["shared"]),
            )
        elif spills is not None:
            usage = replace(
                usage,
                stack_bytes=int(spills["stack"]),
                spill_bytes=int(spills["stores"]) + int(spills["loads"]),
            )
        elif used is not None:
            shared = used["shared"]
            usage = replace(
                usage, registers=int(used["registers"]), smem_bytes=int(shared) if shared else 0
            )
        else:
            continue
        found[name] = usage
    if not found:
        raise UnreadableProfile(SOURCE, "names no function's registers or stack")
    return tuple(found.values())[:MAX_KERNELS]
