"""Instructions of each kernel from a disassembly: `cuobjdump -sass`, `nvdisasm`.

Counted is what stands up to the last exit or jump: padding after it is not code. Beside each
mnemonic stand those of its forms that tools ask for: widths of memory accesses, kinds of barriers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kopt.tools.collect.unreadable import MAX_KERNELS, Remarks, UnreadableProfile, bounded

SOURCE = "SASS"

_FUNCTION = re.compile(r"^\s*Function\s*:\s*(\S+)\s*$")
_SECTION = re.compile(r"^\s*\.section\s+(\.\S+?),")
_LABEL = re.compile(r"^\.text\.(\S+):\s*$")
_ARCH = re.compile(r"^\s*(?:code for|\.target)\s+(sm_\d+[af]?)")
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P[0-9T]+\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)"
)
_ENDS = frozenset({"EXIT", "BRA", "RET", "BRX", "JMP", "KILL"})
_WIDTHS = frozenset({"64", "128", "U8", "U16", "S8", "S16"})
_SHOWN: dict[str, frozenset[str]] = {
    **dict.fromkeys(("LDG", "STG", "LDS", "STS", "LDL", "STL", "LD", "ST"), _WIDTHS),
    "BAR": frozenset({"SYNC", "RED", "ARV"}),
    "CALL": frozenset({"REL", "ABS"}),
    "MUFU": frozenset({"EX2", "RCP", "RSQ", "SQRT", "LG2", "SIN", "COS", "TANH"}),
}
"""Mnemonic to the modifiers of it that are counted apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SassFunction:
    """One function of a binary."""

    name: str
    """As the binary has it, mangled."""
    counts: dict[str, int]
    """Mnemonic to number of instructions; `LDG.128` counts those of `LDG` with the modifier."""

    @property
    def num_instructions(self) -> int:
        """Instructions up to the last exit or jump."""
        return sum(count for name, count in self.counts.items() if "." not in name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SassReport:
    """The functions of one binary."""

    functions: tuple[SassFunction, ...]
    arch: str | None = None
    remarks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Listing:
    """A function being read."""

    name: str
    opcodes: list[str] = field(default_factory=list)
    last_end: int = 0
    """Number of opcodes up to the last exit or jump."""


def parse_sass(text: str) -> SassReport:
    """Return the instruction counts of each function in a disassembly.

    Args:
        text: output of `cuobjdump -sass` or `nvdisasm`.

    Raises:
        UnreadableProfile: there is no instruction in it.
    """
    remarks = Remarks()
    listings: dict[str, _Listing] = {}
    current: _Listing | None = None
    arch: str | None = None
    for line in bounded(text, source=SOURCE).splitlines():
        named = _FUNCTION.match(line) or _LABEL.match(line)
        if named is not None:
            current = listings.setdefault(named[1], _Listing(named[1]))
            continue
        section = _SECTION.match(line)
        if section is not None:
            # Data sections have offsets like code; a code section is followed by its label.
            current = None
            continue
        found_arch = _ARCH.match(line)
        if found_arch is not None:
            arch = arch or found_arch[1]
            continue
        opcode = _INSTRUCTION.match(line)
        if opcode is not None and current is not None:
            current.opcodes.append(opcode[1])
            if opcode[1].split(".")[0] in _ENDS:
                current.last_end = len(current.opcodes)
    read = [listing for listing in listings.values() if listing.opcodes]
    if not read:
        raise UnreadableProfile(SOURCE, "no function with instructions in the disassembly")
    if len(read) > MAX_KERNELS:
        remarks.note(f"only the first {MAX_KERNELS} of {len(read)} functions were read")
    functions = []
    for listing in read[:MAX_KERNELS]:
        if not listing.last_end:
            remarks.note(f"{listing.name[:80]} has no exit: the disassembly is cut off")
        code = listing.opcodes[: listing.last_end or len(listing.opcodes)]
        functions.append(SassFunction(name=listing.name, counts=_counted(code)))
    return SassReport(functions=tuple(functions), arch=arch, remarks=remarks.lines())


def _counted(opcodes: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for opcode in opcodes:
        mnemonic, *modifiers = opcode.split(".")
        counts[mnemonic] = counts.get(mnemonic, 0) + 1
        for modifier in _SHOWN.get(mnemonic, frozenset()).intersection(modifiers):
            name = f"{mnemonic}.{modifier}"
            counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))
