"""What a model wishes at the choices of a compiled model, and the groups that follow from it.

Invariants, whatever it wishes: a value that is no operation of the model never leaves a group that
the rule made round it; no group has more than MAX_LAUNCHES, unless the rule made it; without any
wish the groups are the rule's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kopt.compiled.choices import Choice, Decider
from kopt.compiled.groups import (
    ALONE,
    MAX_LAUNCHES,
    Group,
    Part,
    are_within_reach,
    group_of,
    passed_between,
    why_of,
)
from kopt.compiled.output_code import OutputCode

_WISHED: Mapping[Decider, str] = {
    "model": "the model's wish to fuse is refused",
    "rule": "fused no more",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a model says of a choice."""

    place: int
    kernel: str
    """That is launched there, as a check."""
    fuse: bool
    reason: str


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
