"""A candidate's outputs: the buffers they come in, their form, and their comparison.

The child says how its outputs are formed; their values are taken from buffers of ours, which were
poisoned before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from kopt.actors.child.memory import spec_of
from kopt.actors.child.plain import NotPlain, decode
from kopt.actors.child.tensor_spec import Shareable, TensorSpec
from kopt.actors.supervisor.child import ChildFailed, specs_of
from kopt.actors.supervisor.exchange import let_go_in, new_tensor, place_of
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Trail
from kopt.actors.verify.compare import compare_outputs, flatten, structure_failure, worst
from kopt.ladder import LADDERS
from kopt.verdict import Cheated, Incorrect

INTEGER_POISON = 7
"""Poison of integer outputs, which have no NaN: no value that a reference is likely to give."""


class Buffer(Protocol):
    """One output tensor of a candidate: in memory that the child maps, or taken from there."""

    spec: TensorSpec
    tensor: torch.Tensor


@dataclass(slots=True)
class Taken:
    """An output tensor in private memory: what a child still writes changes nothing."""

    spec: TensorSpec
    tensor: torch.Tensor


def take(buffers: Sequence[Shareable]) -> list[Taken]:
    """Return private copies of what a child has written so far."""
    return [Taken(each.spec, each.tensor.clone()) for each in buffers]


def output_bytes(outputs: object) -> int:
    """Return the bytes of one call's output tensors."""
    return sum(
        spec_of(leaf).num_bytes for _, leaf in flatten(outputs) if isinstance(leaf, torch.Tensor)
    )


def check_notes(answer: dict[str, Any], position: int, judged: JudgedSet, *, trail: Trail) -> None:
    """What the child itself says of its outputs: a tripwire, since values decide."""
    notes = answer["notes"][position] if _has_notes(answer, position) else {}
    types = notes.get("types")
    if types:
        detail = f"expected torch.Tensor, found {str(types)[:60]}"
        raise trail.fail("output_type", Cheated(check="output_type", detail=detail))
    if notes.get("aliases") and not judged.may_alias:
        detail = "an output shares memory with an input"
        raise trail.fail("aliasing", Incorrect(check="aliasing", detail=detail))
    devices = notes.get("devices")
    if devices and devices != list(judged.devices):
        detail = f"expected outputs on {list(judged.devices)}, found {str(devices)[:60]}"
        raise trail.fail("output_device", Incorrect(check="output_device", detail=detail))
    if notes.get("dense") is False:
        detail = "an output's elements share memory (stride 0)"
        raise trail.fail("dense", Incorrect(check="dense", detail=detail))


def _has_notes(answer: dict[str, Any], position: int) -> bool:
    notes = answer.get("notes")
    return isinstance(notes, list) and len(notes) > position and isinstance(notes[position], dict)


def compare(
    bench: Bench,
    judged: JudgedSet,
    answer: dict[str, Any],
    position: int,
    buffers: Sequence[Buffer],
    *,
    name: str,
    trail: Trail,
) -> None:
    """Compare one call's outputs, from our buffers, with the reference's.

    Raises:
        Judged: form or values differ.
        ChildFailed: the answer is no answer.
    """
    outputs = check_form(judged.outputs, answer, position, buffers, trail=trail)
    comparison = compare_outputs(
        outputs,
        reference=judged.outputs,
        ref64=judged.outputs64,
        ladder=LADDERS[bench.config.ladder],
        inputs=judged.arguments(),
    )
    let_go_in(bench.exchange)
    trail.errors.append(comparison.error)
    if comparison.failure is not None:
        raise trail.fail(
            name, Incorrect(check=name, detail=comparison.failure, error=worst(trail.errors))
        )


def check_form(
    reference: object,
    answer: dict[str, Any],
    position: int,
    buffers: Sequence[Buffer],
    *,
    trail: Trail,
) -> object:
    """Return one call's outputs, whose form is that of the reference's.

    Raises:
        Judged: the form is another.
        ChildFailed: the answer is no answer.
    """
    outputs = _form(answer, position, buffers)
    failure = structure_failure(outputs, reference=reference)
    if failure is not None:
        raise trail.fail("structure", Incorrect(check="structure", detail=failure))
    return outputs


def _form(answer: dict[str, Any], position: int, buffers: Sequence[Buffer]) -> object:
    """Return the outputs as the child says they are formed, with the values of our buffers.

    A tensor whose shape or dtype differs from the reference's is not in any buffer: an empty one
    of the form that was announced stands for it, and the comparison of forms refuses it.
    """
    specs = specs_of(answer)
    first = 0

    def get(number: int) -> torch.Tensor:
        spec = specs[number]
        index = number - first
        if 0 <= index < len(buffers) and buffers[index].spec == spec:
            return buffers[index].tensor
        return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta")

    try:
        trees = answer["trees"]
        first = sum(_count(each) for each in trees[:position])
        return decode(trees[position], get)
    except (NotPlain, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ChildFailed("died", "answer", f"spoke out of turn: {error}") from None


def _count(tree: object) -> int:
    count = 0

    def get(number: int) -> int:
        nonlocal count
        count += 1
        return number

    decode(tree, get)
    return count


def poisoned(outputs: object) -> list[Shareable]:
    """Return buffers of the reference's output form and place, filled with what no output is."""
    buffers: list[Shareable] = []
    for _, leaf in flatten(outputs):
        if isinstance(leaf, torch.Tensor):
            shared = new_tensor(spec_of(leaf), place=place_of(leaf))
            if leaf.is_floating_point() or leaf.is_complex():
                shared.tensor.fill_(float("nan"))
            else:
                shared.tensor.fill_(leaf.dtype is not torch.bool and INTEGER_POISON)
            buffers.append(shared)
    return buffers
