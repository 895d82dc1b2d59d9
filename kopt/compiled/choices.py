"""Where the launches of a compiled model may be fused or kept apart.

The second half of KernelOPT's strategy analyst (§4.2). What is allowed is decided here, without a
model: a boundary between two launches is a choice where values pass over it, both sides and both
together have a reference, and together they are at most MAX_LAUNCHES. A model picks among choices
(wishes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kopt.compiled.groups import (
    MAX_LAUNCHES,
    MERGE_SHARE,
    Group,
    Part,
    are_within_reach,
    group_of,
    passed_between,
)
from kopt.compiled.output_code import OutputCode, Step

Decider = Literal["rule", "model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A tensor between launches."""

    name: str
    dtype: str
    """torch's name (`float32`); empty where it is not known."""
    size: tuple[int, ...]
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What stands before or behind a boundary, as the rule groups it."""

    places: tuple[int, ...]
    """Of its launches."""
    kernels: tuple[str, ...]
    operations: tuple[str, ...]
    """ATen's names."""
    reads: tuple[Value, ...]
    results: tuple[Value, ...]
    share: float | None = None
    """Of the model's time, 0 to 1; None where it was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A boundary at which launches may be fused or kept apart."""

    place: int
    """Of the launch that begins what is behind it."""
    before: Side
    behind: Side
    passed: tuple[Value, ...]
    """What goes over it."""
    saved: float
    """Share of what both sides read and write that one kernel would not, 0 to 1."""
    rule_fuses: bool
    why: str
    """What the rule decided, and by which figure."""
    fused: bool
    """What holds."""
    decided_by: Decider = "rule"
    reason: str = ""
    """The model's, or why its wish does not hold; empty where it was not asked or said nothing."""


def choices_of(
    code: OutputCode,
    parts: Sequence[Part],
    *,
    values: Mapping[str, Value],
    named: Collection[str],
    operations_of: Callable[[Group], tuple[str, ...] | None],
) -> list[Choice]:
    """Return the choices of a model, in order.

    Args:
        code: of the model.
        parts: what the rule puts together (`ruled_parts`).
        values: what is known of each value; one that is not in it counts nothing.
        named: values that are operations of the model.
        operations_of: called with a group; what it computes in ATen's words, None where it has no
            reference.
    """
    found = []
    for before, behind, part in _boundaries(parts, named):
        passed = passed_between(before, behind)
        if not passed or len(before) + len(behind) > MAX_LAUNCHES:
            continue
        if not are_within_reach((*before, *behind)):
            continue
        groups = [group_of(code, steps, why="") for steps in (before, behind, (*before, *behind))]
        operations = [operations_of(group) for group in groups]
        if any(each is None for each in operations):
            continue
        sides = [
            _side(group, each or (), values)
            for group, each in zip(groups[:2], operations[:2], strict=True)
        ]
        saved = _saved(code, groups, passed, values)
        place = behind[0].place
        why = "" if part is None else part.joined.get(place, "")
        found.append(
            Choice(
                place=place,
                before=sides[0],
                behind=sides[1],
                passed=tuple(_value(name, values) for name in passed),
                saved=saved,
                rule_fuses=bool(why),
                why=why or f"kept apart: the next launch saves less than {MERGE_SHARE:.0%}",
                fused=bool(why),
            )
        )
    return found


def _boundaries(
    parts: Sequence[Part], named: Collection[str]
) -> list[tuple[tuple[Step, ...], tuple[Step, ...], Part | None]]:
    """Return what is before and behind each boundary that is open, and the part that it is in."""
    found: list[tuple[tuple[Step, ...], tuple[Step, ...], Part | None]] = []
    for number, part in enumerate(parts):
        earlier = parts[number - 1] if number else None
        if earlier is not None and earlier.run == part.run:
            found.append((earlier.steps, part.steps, None))
        for count in range(1, len(part.steps)):
            before, behind = part.steps[:count], part.steps[count:]
            if all(value in named for value in passed_between(before, behind)):
                found.append((before, behind, part))
    return found


def _saved(
    code: OutputCode, groups: Sequence[Group], passed: Sequence[str], values: Mapping[str, Value]
) -> float:
    before, behind, both = groups

    def size(names: Collection[str]) -> int:
        return sum(_value(name, values).num_bytes for name in names)

    total = sum(size(each.reads) + size(each.results) for each in (before, behind))
    inner = [v for v in passed if not code.readers(v, after=both.places[-1])]
    shared = [v for v in behind.reads if v in before.reads]
    # Written once and read once for each value that need not leave the kernel.
    return (size(passed) + size(inner) + size(shared)) / total if total else 0.0


def _side(group: Group, operations: tuple[str, ...], values: Mapping[str, Value]) -> Side:
    return Side(
        places=group.places,
        kernels=group.kernels,
        operations=operations,
        reads=tuple(_value(name, values) for name in group.reads),
        results=tuple(_value(name, values) for name in group.results),
    )


def _value(name: str, values: Mapping[str, Value]) -> Value:
    return values.get(name) or Value(name=name, dtype="", size=(), num_bytes=0)
