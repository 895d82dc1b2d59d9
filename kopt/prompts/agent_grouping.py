"""The strategist's prompt and answer: which launches of a compiled model are fused.

Source: KernelOPT §4.2 (the strategy analyst's call for inputs of several kernels).

Pairs that look alike (the layers of a model) are asked about once, and decided alike. What the
answer leaves out, contradicts or does not name as asked is not guessed: it stays the rule's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kopt.compiled.choices import Choice, Side, Value
from kopt.compiled.groups import MAX_LAUNCHES
from kopt.compiled.record import Apart
from kopt.compiled.wishes import Wish
from kopt.ports import Message
from kopt.prompts.excerpts import short_line
from kopt.prompts.json_objects import json_objects, no_object
from kopt.prompts.templates import filled

MAX_PAIRS = 24
"""In one prompt, about 150 tokens each: those that pass most bytes. The rule has the others."""
MAX_REASON = 200
"""Characters of a reason."""
MAX_NAMED = 8
"""Kernels, operations and values of a side that are named."""
_WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("fuse", "fused", "merge", "merged", "together", "join"), True),
    **dict.fromkeys(("keep", "keep apart", "apart", "separate", "split", "optimise"), False),
    **dict.fromkeys(("kept apart", "optimize", "do not fuse", "don't fuse"), False),
}
_KEYS = ("pairs", "decisions", "choices")


class Pair(NamedTuple):
    """Choices that look alike, in order."""

    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """What a strategist's answer decides."""

    wishes: tuple[Wish, ...] = ()
    faults: tuple[str, ...] = ()
    """What of it could not be used, each in a few words."""


@dataclass(slots=True, kw_only=True)
class _Said:
    decisions: list[tuple[bool, str]] = field(default_factory=list)


def pairs_of(choices: Sequence[Choice]) -> list[Pair]:
    """Return what a strategist is asked about, in the model's order."""
    alike: dict[object, list[Choice]] = {}
    for choice in choices:
        key = (
            choice.before.kernels,
            choice.behind.kernels,
            sum(value.num_bytes for value in choice.passed),
            round(choice.saved, 3),
            choice.rule_fuses,
        )
        alike.setdefault(key, []).append(choice)
    pairs = [Pair(tuple(each)) for each in alike.values()]
    largest = sorted(pairs, key=_passed_bytes, reverse=True)[:MAX_PAIRS]
    return [pair for pair in pairs if pair in largest]


def grouping_prompt(apart: Apart) -> tuple[Message, ...]:
    """Return the messages that ask for decisions on a model's choices, of which it has some."""
    pairs = pairs_of(apart.choices)
    is_cuda = apart.recipe is not None and apart.recipe.device == "cuda"
    user = filled(
        "agent_grouping",
        model=apart.model,
        device="a GPU" if is_cuda else "a CPU",
        num_launches=sum(kernel.launches for kernel in apart.kernels),
        num_library=len(apart.library_calls),
        pairs="\n\n".join(_pair_text(pair, number) for number, pair in enumerate(pairs, start=1)),
        most=MAX_LAUNCHES,
    )
    return (Message("system", filled("agent_strategist")), Message("user", user))


def read_grouping(text: str, choices: Sequence[Choice]) -> Grouping:
    """Return what an answer decides, and what of it cannot be used.

    Args:
        text: of the strategist.
        choices: that it was asked about (`grouping_prompt`).
    """
    pairs = pairs_of(choices)
    said = [_Said() for _ in pairs]
    faults: dict[str, None] = {}
    is_any = False
    for entry in _entries(text):
        is_any = True
        number = _number(entry.get("pair"))
        if number is None or not 1 <= number <= len(pairs):
            faults[f"there is no pair {short_line(str(entry.get('pair')), max_characters=20)}"] = (
                None
            )
            continue
        fuse = _decision(entry)
        if fuse is None:
            faults[f"pair {number}: neither fuse nor keep"] = None
            continue
        said[number - 1].decisions.append((fuse, _reason(entry)))
    if not is_any:
        is_object = next(json_objects(text), None) is not None
        fault = "no decisions in the form asked for" if is_object else no_object(text)
        return Grouping(faults=(fault,))
    wishes: list[Wish] = []
    for number, (pair, each) in enumerate(zip(pairs, said, strict=True), start=1):
        kinds = {fuse for fuse, _ in each.decisions}
        if len(kinds) > 1:
            faults[f"pair {number}: both fused and kept apart"] = None
        elif not kinds:
            if not any(fault.startswith(f"pair {number}:") for fault in faults):
                faults[f"pair {number}: not decided"] = None
        else:
            fuse, reason = each.decisions[0]
            wishes += [
                Wish(
                    place=choice.place,
                    kernel=choice.behind.kernels[0],
                    fuse=fuse,
                    reason=reason,
                )
                for choice in pair.choices
            ]
    return Grouping(wishes=tuple(wishes), faults=tuple(faults))


def _entries(text: str) -> Iterator[Mapping[str, object]]:
    """Yield the decisions of the first object that lists some; else objects that each are one."""
    alone = []
    for value in json_objects(text):
        named = {str(key).casefold(): each for key, each in value.items()}
        listed = next((named[key] for key in _KEYS if key in named), None)
        if isinstance(listed, Mapping):  # by their numbers
            listed = [
                {"pair": key, **(each if isinstance(each, Mapping) else {"decision": each})}
                for key, each in listed.items()
            ]
        if isinstance(listed, list):
            for each in listed:
                if isinstance(each, Mapping):
                    yield {str(key).casefold(): held for key, held in each.items()}
            return
        if "pair" in named:
            alone.append(named)
    yield from alone


def _number(value: object) -> int | None:
    if isinstance(value, str):
        digits = value.casefold().removeprefix("pair").strip(" #.:")
        return int(digits) if digits.isdecimal() and len(digits) < 6 else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _decision(entry: Mapping[str, object]) -> bool | None:
    said = entry.get("decision", entry.get("fuse"))
    if isinstance(said, bool):
        return said
    if not isinstance(said, str):
        return None
    return _WORDS.get(" ".join(said.casefold().replace("_", " ").split()).strip(" ."))


def _reason(entry: Mapping[str, object]) -> str:
    said = entry.get("reason")
    if not isinstance(said, str) or not said.strip():
        return "no reason given"
    line = " ".join(said[: 8 * MAX_REASON].split())
    # It is shown on terminals: nothing in it may move a cursor.
    return short_line("".join(filter(str.isprintable, line)), max_characters=MAX_REASON)


def _passed_bytes(pair: Pair) -> int:
    return sum(value.num_bytes for choice in pair.choices for value in choice.passed)


def _pair_text(pair: Pair, number: int) -> str:
    choice = pair.choices[0]
    count = len(pair.choices)
    places = "" if count == 1 else f" (at {count} places alike; your decision is for all of them)"
    decided = "fuse" if choice.rule_fuses else "keep"
    return "\n".join(
        [
            f"### Pair {number}{places}",
            "",
            f"- before: {_side_text(choice.before)}",
            f"- behind: {_side_text(choice.behind)}",
            f"- passed: {_values_text(choice.passed)}",
            f"- saved by one kernel: {choice.saved:.0%} of what both read and write",
            f"- the rule: {decided} ({choice.why})",
        ]
    )


def _side_text(side: Side) -> str:
    share = "not measured" if side.share is None else f"{side.share:.1%} of the model's time"
    return (
        f"{_listed(side.kernels)}; computes {_listed(side.operations)}; "
        f"reads {_values_text(side.reads)}; writes {_values_text(side.results)}; {share}"
    )


def _values_text(values: Sequence[Value]) -> str:
    return _listed([_value_text(value) for value in values]) or "nothing"


def _value_text(value: Value) -> str:
    if not value.dtype:
        return value.name
    size = ", ".join(map(str, value.size))
    return f"{value.name} {value.dtype}[{size}] {_bytes(value.num_bytes)}"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.4g} GB"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more
