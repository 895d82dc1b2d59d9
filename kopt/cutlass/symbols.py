"""What a C++ text names: the identifiers in it, and the lines that define one.

No parser: lines are told by how CUTLASS and CuTe write them, and what is missed is found as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

IDENTIFIER = re.compile(r"[A-Za-z_]\w+")
_KEYWORDS = frozenset(
    {
        *("if", "for", "while", "switch", "return", "catch", "sizeof", "defined", "decltype"),
        *("alignas", "asm", "assert", "static_assert", "namespace", "template", "requires"),
        *("operator", "CUTE_STATIC_ASSERT", "CUTE_STATIC_ASSERT_V", "CUTLASS_ASSERT"),
        "__launch_bounds__",
    }
)
"""What stands before a parenthesis at the start of a line and is no function's name."""
_TYPE = r"(?:struct|class|union|enum(?:[ \t]+class)?|concept)[ \t]+(?:[A-Z_]+\([^()\n]*\)[ \t]+)?"
_DEFINITION = re.compile(
    rf"^[ \t]*(?:template[ \t]*<[^\n]*>[ \t]*)?{_TYPE}(?P<type>\w+)(?![^\n]*;[ \t]*$)"
    r"|^[ \t]*using[ \t]+(?P<alias>\w+)[ \t]*="
    r"|^[ \t]*#[ \t]*define[ \t]+(?P<macro>\w+)"
    r"|^(?:[\w:&<>,*]+[ \t]+){0,8}?(?P<function>[a-z_]\w*)[ \t]*\((?![^\n]*;[ \t]*$)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that a text defines."""

    name: str
    line: int
    """From 1."""


def symbols_of(text: str) -> list[Symbol]:
    """Return what a text defines: types, aliases, macros, functions; in order."""
    found: list[Symbol] = []
    line, seen = 1, 0
    for match in _DEFINITION.finditer(text):
        name = match[match.lastgroup or 0]
        if name in _KEYWORDS:
            continue
        start = match.start(match.lastgroup or 0)
        line += text.count("\n", seen, start)
        seen = start
        found.append(Symbol(name, line))
    return found
