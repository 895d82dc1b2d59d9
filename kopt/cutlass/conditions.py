"""Conditions of assertions, evaluated where numbers are known: C++ in, True, False or None out.

Only what C++ and Python read alike: comparisons of two, `&&`, `||`, + - * / %, shifts, parentheses,
`sizeof(T)`. Bit operations and `!` bind otherwise in Python and are left alone, as is all the rest.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

MAX_SHIFT = 62
_SIZE = re.compile(r"\bsizeof\s*\(\s*(\w+)\s*\)")
_BITS = re.compile(r"\b(?:cute::)?sizeof_bits(?:_v\s*<\s*(\w+)\s*>|\s*<\s*(\w+)\s*>\s*::\s*value)")
_CAST = re.compile(r"\b(?:u?int(?:8|16|32|64)?_t|int|unsigned|size_t)\s*\(\s*(\d+)\s*\)")
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]{1,3}\b")
_ALLOWED = re.compile(r"[\w\s()<>=!&|+*/%-]*", re.ASCII)
SIZE, BITS = "sizeof__", "bits__"
"""Prefixes of the names that sizes of types have in a condition."""

_Number = int | bool
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}


class _Unknown(Exception):
    """The condition says something that is not read, or asks for what is not known."""


def names_in(condition: str) -> set[str] | None:
    """Return the parameters that a condition asks for; None where it cannot be evaluated."""
    tree = _parsed(condition)
    if tree is None:
        return None
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {name.removeprefix(SIZE).removeprefix(BITS) for name in names}


def holds(condition: str, *, numbers: Mapping[str, int], sizes: Mapping[str, int]) -> bool | None:
    """Return whether a condition holds; None where that cannot be told.

    Args:
        condition: in C++.
        numbers: values of the parameters that are numbers.
        sizes: bits of the parameters that are types.
    """
    tree = _parsed(condition)
    if tree is None:
        return None
    known = dict(numbers)
    for name, bits in sizes.items():
        known[BITS + name] = bits
        if bits % 8 == 0:
            known[SIZE + name] = bits // 8
    try:
        return bool(_value(tree.body, known))
    except _Unknown:
        return None


def _parsed(condition: str) -> ast.Expression | None:
    text = _BITS.sub(lambda match: BITS + (match[1] or match[2]), condition)
    text = _SIZE.sub(SIZE + r"\1", text)
    text = _CAST.sub(r"\1", text)
    text = _SUFFIX.sub(r"\1", text)
    if not _ALLOWED.fullmatch(text):
        return None
    text = text.replace("&&", " and ").replace("||", " or ")
    if re.search(r"[&|]|!(?!=)|\*\*|//|\bnot\b|\bin\b|\bis\b", text):
        return None
    text = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", text))
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if all(_is_read(node) for node in ast.walk(tree.body)) else None


def _is_read(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1  # `size<0>(a)` is a chain in Python, and `a < b < c` another here
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    plain = ast.BoolOp | ast.BinOp | ast.UnaryOp | ast.Name | ast.expr_context
    return isinstance(node, plain | ast.boolop | ast.operator | ast.unaryop | ast.cmpop)


def _value(node: ast.expr, known: Mapping[str, int]) -> _Number:
    match node:
        case ast.Constant(value=bool() | int() as value):
            return value
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, known)
        case ast.BoolOp(op=op, values=values):
            return _joined(values, known, is_or=isinstance(op, ast.Or))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            return _COMPARISONS[type(op)](_value(left, known), _value(right, known))
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _value(left, known), _value(right, known))
    raise _Unknown


def _joined(values: list[ast.expr], known: Mapping[str, int], *, is_or: bool) -> bool:
    """A part that is not known decides nothing where another one decides all."""
    unknown = False
    for each in values:
        try:
            if bool(_value(each, known)) is is_or:
                return is_or
        except _Unknown:
            unknown = True
    if unknown:
        raise _Unknown
    return not is_or


def _binary(op: ast.operator, left: int, right: int) -> int:
    if type(op) in _OPERATORS:
        return _OPERATORS[type(op)](left, right)
    if isinstance(op, ast.Div | ast.Mod) and right > 0 and left >= 0:  # as C++ rounds only there
        return left // right if isinstance(op, ast.Div) else left % right
    if isinstance(op, ast.LShift | ast.RShift) and 0 <= right <= MAX_SHIFT and left >= 0:
        return left << right if isinstance(op, ast.LShift) else left >> right
    raise _Unknown
