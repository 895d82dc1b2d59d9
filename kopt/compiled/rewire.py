"""Putting functions where launches were: the text of Inductor's `call`, changed.

At the place of a group's first launch the function is called with the values that the group reads;
at each place where a launch wrote a value that is read later, the variable is bound to the
function's result. Where the variable is a part of a larger tensor the result is copied into it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kopt.compiled.groups import Group
from kopt.compiled.output_code import OutputCode, Step, call_function, read_output_code, statements

FIT = "_kopt_fit"
"""Name of the function that gives a result the strides that the rest of `call` expects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Of a value, as the compiler decided it."""

    size: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A function in place of a group."""

    group: Group
    function: str
    """Its name in the text: it takes `inputs` and gives `group.results`, one alone or a tuple."""
    inputs: tuple[str, ...]
    """Values, of the group's reads, in the order of the function's arguments."""


def rewire(
    source: str, replacements: Sequence[Replacement], *, layouts: Mapping[str, Layout]
) -> str:
    """Return an output module's text with functions in place of groups.

    All outside of `call` is as it was, byte for byte; without replacements, all is.

    Args:
        source: Inductor's output module.
        replacements: of groups that have no launch in common.
        layouts: of every value that a replacement takes or gives.

    Raises:
        ValueError: a value is held by no variable where the function is to be called, a place is
            no launch, or two replacements want the same launch.
    """
    if not replacements:
        return source
    code = read_output_code(source)
    module = ast.parse(source)
    function = call_function(module)
    by_place: dict[int, list[ast.stmt]] = {}
    for number, replacement in enumerate(replacements):
        changed = _statements(code, replacement, layouts=layouts, result=f"_kopt_made_{number}")
        if not changed.keys().isdisjoint(by_place):
            raise ValueError(f"two replacements of {replacement.group.name}")
        by_place |= changed
    for place in _unneeded(function, code, replacements):
        by_place.setdefault(place, [])
    places = {id(node): place for place, node in enumerate(statements(function))}
    _Rewriter(places, by_place).visit(function)
    ast.fix_missing_locations(function)
    lines = source.splitlines(keepends=True)
    start, end = function.lineno - 1, function.end_lineno
    indent = " " * function.col_offset
    text = "".join(f"{indent}{line}\n" for line in ast.unparse(function).splitlines())
    return "".join(lines[:start]) + text + "".join(lines[end:])


def _statements(
    code: OutputCode, replacement: Replacement, *, layouts: Mapping[str, Layout], result: str
) -> dict[int, list[ast.stmt]]:
    """What stands at each place of a group instead of its launch."""
    group = replacement.group
    steps = {step.place: step for step in code.launches}
    if not all(place in steps for place in group.places):
        raise ValueError(f"{group.name}: no launch at places {group.places}")
    first = steps[group.places[0]]
    arguments = ", ".join(_argument(value, first, layouts) for value in replacement.inputs)
    changed: dict[int, list[ast.stmt]] = {place: [] for place in group.places}
    changed[first.place] += ast.parse(f"{result} = {replacement.function}({arguments})").body
    made = (
        {group.results[0]: result}
        if len(group.results) == 1
        else {value: f"{result}[{number}]" for number, value in enumerate(group.results)}
    )
    last_write = {
        write.variable: (place, write) for place in group.places for write in steps[place].writes
    }
    for value, expression in made.items():
        place, write = last_write[value]
        layout = layouts[value]
        fitted = f"{FIT}({expression}, {layout.size}, {layout.stride})"
        line = f"{value} = {fitted}" if write.own else f"{value}.copy_({fitted})"
        changed[place] += ast.parse(line).body
    changed[group.places[-1]] += ast.parse(f"del {result}").body
    return changed


def _argument(value: str, first: Step, layouts: Mapping[str, Layout]) -> str:
    holder = (first.holders or {}).get(value)
    if holder is None:
        raise ValueError(f"{value} is held by no variable where {first.name} is launched")
    if holder == value or value not in layouts:
        return holder
    layout = layouts[value]
    return f"reinterpret_tensor({holder}, {layout.size}, {layout.stride}, 0)"


def _unneeded(
    function: ast.FunctionDef, code: OutputCode, replacements: Sequence[Replacement]
) -> set[int]:
    """Places where memory is made for a variable that is bound to a result before it is read."""
    steps = {step.place: step for step in code.launches}
    nodes = list(statements(function))
    found: set[int] = set()
    for replacement in replacements:
        places = replacement.group.places
        own = {w.variable for place in places for w in steps[place].writes if w.own}
        for value in own & set(replacement.group.results):
            naming = [
                place
                for place, node in enumerate(nodes[: places[-1] + 1])
                if place not in places and _names(node, value)
            ]
            if len(naming) == 1 and _makes(nodes[naming[0]]):
                found.add(naming[0])
    return found


def _names(node: ast.stmt, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _makes(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).startswith("empty_strided")
    )


class _Rewriter(ast.NodeTransformer):
    """Puts statements in place of others."""

    def __init__(self, places: Mapping[int, int], by_place: Mapping[int, list[ast.stmt]]) -> None:
        self._places = places
        self._by_place = by_place

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        """Replace a statement by its place, if it is to be."""
        place = self._places.get(id(node))
        if place is not None and place in self._by_place:
            return self._by_place[place] or [ast.Pass()]
        return self.generic_visit(node)
