"""Whether the output reacts to each input, parameter and buffer: one is changed, the rest stays.

Judged with randomised weights, where no default (a scale of 1, a shift of 0) hides an operation.
Source: exploits §E5; KernelBench notes C1, C4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from kopt.actors.child.tensor_spec import Shareable
from kopt.actors.lint.answers import Answer, passes, unchanged
from kopt.actors.lint.subject import copies, with_one
from kopt.actors.lint.trivial import Material
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.data.lint import LintRemark, LintTag

MAX_ENTRIES = 256
"""Weights looked at, each by a call of its own."""
LISTED = 4
"""Names that a line lists."""

Effect = Literal["none", "small", "seen"]
"""Of a change on the output: to the bit none, less than the ladder refuses, or more."""


def input_remarks(material: Material, notes: list[str]) -> Iterator[LintRemark]:
    """Yield a remark where the output does not react to an input.

    Args:
        material: the problem.
        notes: what could not be looked at is added.

    Raises:
        ProblemError: the reference does not come up again, or memory is full.
    """
    base = _base(material)
    material.subject.load(material.states[base.state])
    found = _Found()
    for number, shared in enumerate(base.tensors):
        name = f"input {number}"
        own = _others(material.own, number, shared)
        others = own + _others(material.hidden, number, shared)
        if not others:
            notes.append(f"{name}: every draw gives the same values; its effect was not looked at")
            continue
        effects = []
        for other in others:
            effects.append(_effect_of(material, base, number, other))
            if effects[-1] == "seen":
                break
        if effects[-1] != "seen":
            (found.weak if "small" in effects else found.still).append(name)
        elif len(effects) > len(own) > 0:
            found.weak_here.append(name)
    yield from found.remarks("ignored_input")


def weight_remarks(
    material: Material, notes: list[str], *, parameters: Sequence[str]
) -> Iterator[LintRemark]:
    """Yield remarks where the output does not react to parameters or buffers.

    Args:
        material: the problem.
        notes: what could not be looked at is added.
        parameters: names of the state that are parameters; the others are buffers.

    Raises:
        ProblemError: the reference does not come up again, or memory is full.
    """
    base = _base(material)
    state = material.states[base.state]
    found = {True: _Found(), False: _Found()}
    unseen: list[str] = []
    known = set(parameters)
    for count, (name, shared) in enumerate(state.items()):
        other = changed_weight(shared.tensor, twin=material.states[0][name].tensor)
        if other is None or count >= MAX_ENTRIES:
            unseen.append(name)
            continue
        # All of it each time: a call may have changed it (running statistics).
        material.subject.load(state)
        material.subject.load(with_one(state, name, other))
        effect = _effect(material.subject.outputs(base, state=state), base, material)
        if effect != "seen":
            (found[name in known].weak if effect == "small" else found[name in known].still).append(
                name
            )
    if unseen:
        notes.append(f"effect not looked at: {listed(unseen)}")
    yield from found[True].remarks("ignored_parameter")
    yield from found[False].remarks("ignored_buffer")


def changed_weight(tensor: torch.Tensor, *, twin: torch.Tensor) -> torch.Tensor | None:
    """Return other values for a weight, or None where none are safe to try.

    The twin's (the same weight before it was randomised) where they differ. Weights that are never
    randomised (masks, tables, indices) keep their set of values, in another order.

    Args:
        tensor: the values now.
        twin: as constructed.
    """
    if not tensor.numel():
        return None
    if not _same(tensor, twin):
        return twin
    rolled = tensor.reshape(-1).roll(1).reshape(tensor.shape)
    if not _same(rolled, tensor):
        return rolled
    if tensor.dtype is torch.bool:
        return ~tensor
    if tensor.is_floating_point() or tensor.is_complex():
        one = torch.ones_like(tensor)
        return one if not torch.isfinite(tensor).all() else tensor * 1.5 + (tensor == 0) * one
    return None  # a counter or an index: another value may lie out of bounds


def _base(material: Material) -> JudgedSet:
    return material.anchors()[max(material.anchors())]


def _others(sets: Sequence[JudgedSet], number: int, shared: Shareable) -> list[Shareable]:
    """Return other values of an input, of the same form, from input sets."""
    return [
        judged.tensors[number]
        for judged in sets
        if number < len(judged.tensors)
        and judged.tensors[number].spec == shared.spec
        and not torch.equal(judged.tensors[number].tensor, shared.tensor)
    ]


def _effect_of(material: Material, base: JudgedSet, number: int, other: Shareable) -> Effect:
    tensors = copies(base)
    tensors[number].tensor.copy_(other.tensor)
    found = material.subject.outputs(
        base, tensors=[each.seal() for each in tensors], state=material.states[base.state]
    )
    return _effect(found, base, material)


def _effect(found: Answer | None, base: JudgedSet, material: Material) -> Effect:
    """Return how far outputs are from a set's: not to raise is part of them."""
    if found is None:
        return "seen"
    if unchanged(found, base):
        return "none"
    return "small" if passes(found, base, ladder=material.ladder) else "seen"


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return bool(torch.equal(left, right)) or bool(
        ((left == right) | (left != left) & (right != right)).all()  # NaN is NaN here
    )


@dataclass(slots=True)
class _Found:
    """Names without an effect on the output, or with less than the ladder sees."""

    still: list[str] = field(default_factory=list)
    weak: list[str] = field(default_factory=list)
    weak_here: list[str] = field(default_factory=list)
    """Weak among the problem's own inputs; hidden ones show it."""

    def remarks(self, tag: LintTag) -> Iterator[LintRemark]:
        """Yield the remark on them, if there are any."""
        parts = [
            f"{what} {listed(names)}{where}"
            for what, names, where in (
                ("the output does not depend on", self.still, ""),
                ("the output moves by less than passes with", self.weak, ""),
                (
                    "the output moves by less than passes with",
                    self.weak_here,
                    " among its own inputs; hidden ones show it",
                ),
            )
            if names
        ]
        if parts:
            yield LintRemark(tag=tag, line="; ".join(parts))


def listed(names: Sequence[str]) -> str:
    """Return `a, b, c, d and 3 more`."""
    shown = ", ".join(names[:LISTED])
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED} more"
