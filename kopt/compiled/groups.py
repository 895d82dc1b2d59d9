"""Which launches of a compiled model are one piece of work: fuse, or optimise one by one.

The strategy analyst's decision of KernelOPT (§4.2), made without a model. Launches that follow each
other, with nothing but memory made or let go between them, are merged where

* a value that passes between them is no operation of the model (one half of a split reduction): on
  its own neither has a reference; or
* the memory that a merged kernel need not touch is at least MERGE_SHARE of what both touch.

Library calls are good already: they are kept, and nothing is merged across one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kopt.compiled.output_code import OutputCode, Step

MERGE_SHARE = 0.15
"""Least saving that is worth a larger kernel, of the bytes that both move: below it the two are
better searched apart, since a small kernel has more programs within reach."""
MAX_LAUNCHES = 8
"""In one group: a kernel that does more is not searched well."""
ALONE = "optimised on its own"
"""Of a launch that nothing joins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Launches that are replaced together."""

    places: tuple[int, ...]
    """Of the steps, in order."""
    kernels: tuple[str, ...]
    """Their names, in order."""
    reads: tuple[str, ...]
    """Values that come from outside."""
    results: tuple[str, ...]
    """Values that are read after it or given back, or lie in memory that something else has."""
    why: str
    """What was decided, and by which figure."""

    @property
    def name(self) -> str:
        """The first kernel's name, and how many more: `cpp_fused_mul_0_and_1_more`."""
        more = len(self.kernels) - 1
        return self.kernels[0] + (f"_and_{more}_more" if more else "")


class Part(NamedTuple):
    """Launches that the rule puts together."""

    run: int
    """Parts of the same number have nothing between them that computes."""
    steps: tuple[Step, ...]
    joined: Mapping[int, str]
    """Why each launch but the first is in it, by its place."""


def make_groups(
    code: OutputCode, *, num_bytes: Mapping[str, int], named: Collection[str], merge: bool = True
) -> list[Group]:
    """Return the groups of a model's launches, in order; each launch is in one.

    Args:
        code: of the model.
        num_bytes: size of each value; what is not in it counts nothing.
        named: values that are operations of the model.
        merge: whether launches are merged for speed's sake.
    """
    parts = ruled_parts(code, num_bytes=num_bytes, named=named, merge=merge)
    return [group_of(code, part.steps, why=why_of(part)) for part in parts]


def ruled_parts(
    code: OutputCode, *, num_bytes: Mapping[str, int], named: Collection[str], merge: bool = True
) -> list[Part]:
    """Return what the rule puts together, in order; arguments are those of `make_groups`."""
    parts: list[Part] = []
    for number, steps in enumerate(_runs(code)):
        current: list[Step] = []
        joined: dict[int, str] = {}
        for step in steps:
            reason = (
                _reason(code, current, step, num_bytes=num_bytes, named=named, merge=merge)
                if current
                else ""
            )
            if reason:
                joined[step.place] = reason
            elif current:
                parts.append(Part(number, tuple(current), joined))
                current, joined = [], {}
            current.append(step)
        parts.append(Part(number, tuple(current), joined))
    return parts


def why_of(part: Part) -> str:
    """Return what was decided of a part: by the last launch that joined it."""
    return [ALONE, *part.joined.values()][-1]


def are_within_reach(steps: Sequence[Step], *, before: Sequence[Step] = ()) -> bool:
    """Return whether all that launches read is there where one function would be called for them.

    Args:
        steps: in order.
        before: launches of the same function before them.
    """
    alive = (before or steps)[0].holders or {}
    made = {write.variable for each in before for write in each.writes}
    for step in steps:
        if any(value not in made and value not in alive for value in step.reads):
            return False
        made |= {write.variable for write in step.writes}
    return True


def passed_between(before: Sequence[Step], after: Sequence[Step]) -> tuple[str, ...]:
    """Return the values that launches read of those before them, each once."""
    made = {write.variable for each in before for write in each.writes}
    return tuple(dict.fromkeys(v for step in after for v in step.reads if v in made))


def _runs(code: OutputCode) -> list[list[Step]]:
    """Launches with nothing between them that computes."""
    runs: list[list[Step]] = []
    broken = True
    for step in code.steps:
        if step.kind == "launch":
            if broken:
                runs.append([])
            runs[-1].append(step)
            broken = False
        elif step.kind == "library" or (step.kind == "other" and (step.reads or step.writes)):
            broken = True
    return runs


def _reason(
    code: OutputCode,
    current: Sequence[Step],
    step: Step,
    *,
    num_bytes: Mapping[str, int],
    named: Collection[str],
    merge: bool,
) -> str:
    """Why a launch joins a group; empty where it does not."""
    passed = passed_between(current, [step])
    if len(current) >= MAX_LAUNCHES or not passed:
        return ""
    if not are_within_reach([step], before=current):
        return ""  # it is not there yet where a merged function would be called
    nameless = [value for value in passed if value not in named]
    if nameless:
        return f"fused: {nameless[0]} between them is no operation of the model"
    if not merge:
        return ""
    inner = [v for v in passed if not code.readers(v, after=step.place)]
    # Written once and read once for each value that need not leave the kernel.
    saved = sum(num_bytes.get(v, 0) for v in passed) + sum(num_bytes.get(v, 0) for v in inner)
    before = {v for each in current for v in each.reads}
    shared = [value for value in step.reads if value in before]
    saved += sum(num_bytes.get(value, 0) for value in shared)
    total = sum(
        num_bytes.get(value, 0)
        for each in (*current, step)
        for value in (*each.reads, *(write.variable for write in each.writes))
    )
    share = saved / total if total else 0.0
    return f"fused: {share:.0%} of their traffic is saved" if share >= MERGE_SHARE else ""


def group_of(code: OutputCode, steps: Sequence[Step], *, why: str) -> Group:
    """Return launches as one group.

    Args:
        code: of the model.
        steps: of it, in order, with nothing between them that computes.
        why: they are one.
    """
    writes = {write.variable: write for step in steps for write in step.writes}
    last = steps[-1].place
    made: set[str] = set()
    reads: list[str] = []
    for step in steps:
        reads += [value for value in step.reads if value not in made]
        made |= {write.variable for write in step.writes}
    return Group(
        places=tuple(step.place for step in steps),
        kernels=tuple(step.name for step in steps),
        reads=tuple(dict.fromkeys(reads)),
        results=tuple(
            value
            for value, write in writes.items()
            if not write.own or code.readers(value, after=last)
        ),
        why=why,
    )
