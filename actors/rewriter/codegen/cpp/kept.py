"""Which values of a row one pass keeps for the next, because computing them again costs more."""

from __future__ import annotations

from kopt.actors.rewriter.codegen.cpp.expressions import HALVES
from kopt.actors.rewriter.codegen.ir import Map, Scan, Value, View, operands
from kopt.actors.rewriter.codegen.program import Program

COSTLY = frozenset(
    [
        "exp",
        "expm1",
        "log",
        "log1p",
        "tanh",
        "erf",
        "one_plus_erf",
        "pow",
        "sin",
        "cos",
        "sigmoid",
        "log2",
        "log10",
        "atan",
    ]
)
"""Maps that are kept rather than computed again."""


def kept_values(program: Program) -> list[Value]:
    """Return the full-size values that a later pass fetches, in the order of the program.

    A pass that needs a costly value which an earlier one had takes over the last value that is
    made of it alone: silu(x), and neither x nor its sigmoid.
    """
    first = {
        value: number
        for number, step in reversed(list(enumerate(program.passes)))
        for value in step.values
    }
    kept: set[Value] = set()
    for number, step in enumerate(program.passes):
        seen: set[Value] = set()
        stack = [*(reduction.arg for reduction in step.reductions), *step.stores]
        while stack:
            value = stack.pop()
            if value not in first or value in seen:
                continue
            seen.add(value)
            is_view = isinstance(value, View) and value not in program.reads  # its base has a name
            if first[value] < number and not is_view and _is_costly(program, value, kept):
                kept.add(value)
            elif value not in kept and value not in program.reads:
                stack.extend(operands(value))
    return [value for value in program.values if value in kept]


def kept_bytes(value: Value) -> int:
    """Return the size of one element as it is kept: half precision is widened once."""
    return 4 if value.dtype in HALVES else value.dtype.itemsize


def _is_costly(program: Program, value: Value, kept: set[Value]) -> bool:
    """Whether making a value from what is kept (or read) takes more than cheap arithmetic."""
    stack, seen = [value], {value}
    while stack:
        here = stack.pop()
        if here in kept:
            continue
        if here in program.reads:
            if here.dtype in HALVES:
                return True
            continue
        if isinstance(here, Scan) or (isinstance(here, Map) and here.op in COSTLY):
            return True
        below = [arg for arg in operands(here) if arg not in seen and _varies(program, arg)]
        seen.update(below)
        stack.extend(below)
    return False


def _varies(program: Program, value: Value) -> bool:
    """Whether a value is one of each element, not of a row."""
    return any(value in step.values for step in program.passes)
