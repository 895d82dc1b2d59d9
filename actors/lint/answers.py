"""Trivial answers to a problem, as trees of tensors of the reference's form, and whether they pass.

The comparison is the evaluator's own. Source: exploits §B-V (classes 40 to 45).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from kopt.actors.child.tensor_spec import Shareable
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.actors.verify.compare import compare_outputs, flatten
from kopt.ladder import Ladder

Answer = object
"""A tree of the reference's output form."""
Maker = Callable[[JudgedSet], Answer | None]
"""Makes the answer to an input set; None where this answer is none for it."""


def passes(answer: Answer | None, judged: JudgedSet, *, ladder: Ladder) -> bool:
    """Return whether an answer passes as the outputs on an input set."""
    if answer is None:
        return False
    found = compare_outputs(
        answer,
        reference=judged.outputs,
        ref64=judged.outputs64,
        ladder=ladder,
        inputs=judged.arguments(),
    )
    return found.failure is None


def unchanged(outputs: Answer | None, judged: JudgedSet) -> bool:
    """Return whether outputs are those of an input set, to the bit."""
    ours, theirs = tensors_of(outputs), tensors_of(judged.outputs)
    return len(ours) == len(theirs) and all(
        left.shape == right.shape and left.dtype == right.dtype and torch.equal(left, right)
        for left, right in zip(ours, theirs, strict=True)
    )


def tensors_of(tree: Answer | None) -> list[torch.Tensor]:
    """Return the tensor leaves of a tree, in its order."""
    return [leaf for _, leaf in flatten(tree) if isinstance(leaf, torch.Tensor)]


def mapped(tree: Answer, change: Callable[[torch.Tensor, int], torch.Tensor]) -> Answer:
    """Return a tree with each tensor replaced; the change is told its position in `tensors_of`."""
    position = -1

    def inner(value: Answer) -> Answer:
        nonlocal position
        if isinstance(value, torch.Tensor):
            position += 1
            return change(value, position)
        if isinstance(value, Mapping):
            changed = {key: inner(value[key]) for key in sorted(value, key=str)}
            return {key: changed[key] for key in value}
        if isinstance(value, list | tuple):
            items = [inner(item) for item in value]
            return tuple(items) if isinstance(value, tuple) else items
        return value

    return inner(tree)


def zeros(judged: JudgedSet) -> Answer:
    """Return zeros of the outputs' form."""
    return mapped(judged.outputs, lambda tensor, _: torch.zeros_like(tensor))


def stored(answers: Mapping[int, JudgedSet]) -> Maker:
    """Return a maker that gives the outputs on another input set.

    Args:
        answers: number of the weights to the set whose outputs stand for all with those weights.
    """

    def make(judged: JudgedSet) -> Answer | None:
        source = answers.get(judged.state)
        if source is None:
            return None
        same_form = [leaf.shape for leaf in tensors_of(source.outputs)] == [
            leaf.shape for leaf in tensors_of(judged.outputs)
        ]
        return source.outputs if same_form else None

    return make


def fitted_mean(answers: Mapping[int, JudgedSet]) -> Maker:
    """Return a maker that gives one number for each output: the mean on another input set.

    Integers and bools get the commonest value.
    """

    def make(judged: JudgedSet) -> Answer | None:
        source = answers.get(judged.state)
        if source is None or any(not leaf.numel() for leaf in tensors_of(source.outputs)):
            return None
        numbers = [_one_number(leaf) for leaf in tensors_of(source.outputs)]
        return mapped(
            judged.outputs, lambda leaf, position: torch.full_like(leaf, numbers[position])
        )

    return make


def repeated(judged: JudgedSet) -> Answer | None:
    """Return the first slice along dimension 0 in the place of all; None where it is the only one.

    None too where an output is too small to tell: of one element a slice.
    """
    leaves = tensors_of(judged.outputs)
    if not leaves or not all(leaf.dim() and leaf.shape[0] > 1 for leaf in leaves):
        return None
    return mapped(judged.outputs, lambda leaf, _: leaf[:1].expand_as(leaf).contiguous())


def rounded(judged: JudgedSet) -> Answer | None:
    """Return the outputs rounded to bfloat16; None where that changes none of them."""
    leaves = tensors_of(judged.outputs)
    if not any(leaf.dtype in (torch.float32, torch.float64) for leaf in leaves):
        return None
    return mapped(judged.outputs, lambda leaf, _: as_bfloat16(leaf))


def as_bfloat16(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values that bfloat16 keeps of a tensor, in its own dtype."""
    if tensor.dtype not in (torch.float32, torch.float64):
        return tensor
    return tensor.to(torch.bfloat16).to(tensor.dtype)


def returned(sources: Sequence[str], states: Sequence[Mapping[str, Shareable]]) -> Maker:
    """Return a maker that gives an input or a weight for each output.

    Args:
        sources: for each output tensor, `input N` or the name of a weight.
        states: the weights by number.
    """

    def make(judged: JudgedSet) -> Answer | None:
        known = named_tensors(judged, states)
        found = [
            None if name not in known else fitted(known[name], leaf)
            for name, leaf in zip(sources, tensors_of(judged.outputs), strict=True)
        ]
        whole = [leaf for leaf in found if leaf is not None]
        if len(whole) < len(found):
            return None
        return mapped(judged.outputs, lambda _, position: whole[position])

    return make


def named_tensors(
    judged: JudgedSet, states: Sequence[Mapping[str, Shareable]]
) -> dict[str, torch.Tensor]:
    """Return the inputs (`input 0`) and weights of an input set by name."""
    inputs = {f"input {n}": shared.tensor for n, shared in enumerate(judged.tensors)}
    weights = {name: shared.tensor for name, shared in states[judged.state].items()}
    return {**weights, **inputs}


def fitted(source: torch.Tensor, output: torch.Tensor) -> torch.Tensor | None:
    """Return a tensor in an output's shape (broadcast, or of as many elements), or None."""
    if source.dtype != output.dtype or not source.numel():
        return None
    if source.numel() == output.numel():
        return source.reshape(output.shape).clone()
    try:
        return source.expand(output.shape).clone()
    except RuntimeError:
        return None


def _one_number(leaf: torch.Tensor) -> float | int | bool:
    if leaf.is_complex():
        return 0.0
    if leaf.is_floating_point():
        return float(leaf.to(torch.float64).mean())
    value = int(leaf.reshape(-1).to(torch.int64).mode().values)
    return bool(value) if leaf.dtype is torch.bool else value
