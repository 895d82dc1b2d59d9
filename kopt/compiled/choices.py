"""Where launches may be fused or kept apart, and what is decided there by a model.

The second half of KernelOPT's strategy analyst (§4.2). What is allowed is decided here, without a
model: a boundary between two launches is a choice where values pass over it, both sides and both
together have a reference, and together they are at most MAX_LAUNCHES. A model picks among choices.

Invariants, whatever it picks: a value that is no operation of the model never leaves a group that
the rule made round it; no group has more than MAX_LAUNCHES, unless the rule made it; without any
wish the groups are the rule's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from kopt.compiled.groups import (
    ALONE,
    MAX_LAUNCHES,
    MERGE_SHARE,
    Group,
    Part,
    are_within_reach,
    group_of,
    passed_between,
    why_of,
)
from kopt.compiled.output_code import OutputCode, Step

Decider = Literal["rule", "model"]
_WISHED: Mapping[Decider, str] = {
    "model": "the model's wish to fuse is refused",
    "rule": "fused no more",
}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a model says of a choice."""

    place: int
    kernel: str
    """That is launched there, as a check."""
    fuse: bool
    reason: str


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


def decided(choices: Sequence[Choice], wishes: Sequence[Wish]) -> tuple[list[Choice], list[str]]:
    """Return the choices with what a model wishes, and a line for each wish that is none of them.

    Args:
        choices: of the model.
        wishes: at most one for a choice.
    """
    by_place = {choice.place: choice for choice in choices}
    faults = []
    for wish in wishes:
        choice = by_place.get(wish.place)
        if choice is None or choice.behind.kernels[0] != wish.kernel:
            faults.append(f"there is no choice before {wish.kernel} at {wish.place}")
            continue
        by_place[wish.place] = replace(
            choice, fused=wish.fuse, decided_by="model", reason=wish.reason
        )
    return [by_place[choice.place] for choice in choices], faults


def decision_lines(choices: Sequence[Choice]) -> list[str]:
    """Return a line for each decision that was the model's, and each that it made void."""
    lines = []
    for choice in choices:
        if not choice.reason:
            continue
        told = "fused" if choice.fused else "kept apart"
        rule = "the same" if choice.fused == choice.rule_fuses else choice.why
        lines.append(
            f"{choice.before.kernels[-1]} | {choice.behind.kernels[0]}: {told} by the "
            f"{choice.decided_by}: {choice.reason} (the rule: {rule})"
        )
    return lines


def regrouped(
    code: OutputCode, parts: Sequence[Part], choices: Sequence[Choice]
) -> tuple[list[Group], list[Choice]]:
    """Return the groups with what was decided, and the choices as they hold.

    Args:
        code: of the model.
        parts: what the rule puts together.
        choices: with what a model wishes (`decided`).
    """
    if all(choice.fused == choice.rule_fuses for choice in choices):
        return [group_of(code, part.steps, why=_why(part, choices)) for part in parts], [*choices]
    by_place = {choice.place: choice for choice in choices}
    pieces = [piece for part in parts for piece in _pieces(part, by_place)]
    made: list[Part] = []
    for number, piece in enumerate(pieces):
        choice = by_place.get(piece.steps[0].place)
        is_next = bool(made) and made[-1].run == piece.run
        if choice is None or not choice.fused or not is_next:
            made.append(piece)
            continue
        refusal = _refusal(made[-1], pieces[number:], by_place)
        if refusal:
            by_place[choice.place] = replace(
                choice,
                fused=False,
                decided_by="rule",
                reason=f"{_WISHED[choice.decided_by]}: {refusal}",
            )
            made.append(piece)
            continue
        joined = {**made[-1].joined, choice.place: choice.why, **piece.joined}
        made[-1] = Part(piece.run, (*made[-1].steps, *piece.steps), joined)
    held = [by_place[choice.place] for choice in choices]
    return [group_of(code, part.steps, why=_why(part, held)) for part in made], held


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


def _pieces(part: Part, by_place: Mapping[int, Choice]) -> list[Part]:
    """A part cut at its choices."""
    starts = [n for n, step in enumerate(part.steps) if n == 0 or step.place in by_place]
    pieces = []
    for start, end in pairwise([*starts, len(part.steps)]):
        steps = part.steps[start:end]
        joined = {
            step.place: part.joined[step.place] for step in steps[1:] if step.place in part.joined
        }
        pieces.append(Part(part.run, steps, joined))
    return pieces


def _refusal(before: Part, following: Sequence[Part], by_place: Mapping[int, Choice]) -> str:
    """Why a piece cannot join what is before it, with what the rule fuses to it; or nothing."""
    steps = [*following[0].steps]
    for piece in following[1:]:
        choice = by_place.get(piece.steps[0].place)
        if piece.run != before.run or choice is None:
            break
        if not (choice.fused and choice.rule_fuses):
            break
        steps += piece.steps
    if len(before.steps) + len(steps) > MAX_LAUNCHES:
        return f"the group would be more than {MAX_LAUNCHES} launches"
    if not passed_between(before.steps, steps):
        return "nothing passes between them any more"
    if not are_within_reach(steps, before=before.steps):
        return "what it reads is not there yet"
    return ""


def _why(part: Part, choices: Sequence[Choice]) -> str:
    """What was decided of a part, the model's decisions by name."""
    places = {step.place for step in part.steps}
    said = []
    for choice in choices:
        if choice.decided_by != "model":
            continue
        inside = choice.place in places and choice.place != part.steps[0].place
        beside = choice.place == part.steps[0].place or choice.before.places[-1] in places
        if (inside and choice.fused) or (beside and not inside and not choice.fused):
            told = "fused by the model" if choice.fused else "kept apart by the model"
            said.append(f"{told}: {choice.reason}")
    if said:
        return "; ".join(dict.fromkeys(said))
    return why_of(part) if part.joined else ALONE


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
