"""One percent of an input in the place of all of it: the first slices along a dimension, repeated.

Shapes stay as they are, so that any reference runs on it. Where the output is a statistic of the
input, or most of the input has no effect, the answer is right. Source: KernelBench notes C1 (losses
and products that read a hundredth of their rows or columns).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from kopt.actors.child.tensor_spec import Shareable
from kopt.actors.lint.subject import copies
from kopt.actors.supervisor.inputs import JudgedSet

SHARE = 100
"""One slice in this many is kept, at least one."""
LEAST_SLICES = SHARE
"""A dimension of fewer is not sampled: one slice of it is more than one percent."""


class Axis(NamedTuple):
    """A dimension that inputs are sampled along."""

    dim: int
    size: int
    kept: int


def sampled_axes(tensors: Sequence[torch.Tensor]) -> list[Axis]:
    """Return the dimensions to sample along: those that are long enough in some input, by number.

    Args:
        tensors: the inputs; the size is the longest of a dimension.
    """
    axes = []
    for dim in range(max((tensor.dim() for tensor in tensors), default=0)):
        size = max(tensor.shape[dim] for tensor in tensors if tensor.dim() > dim)
        if size >= LEAST_SLICES:
            axes.append(Axis(dim, size, kept=max(1, size // SHARE)))
    return axes


def sampled(judged: JudgedSet, *, dim: int) -> list[Shareable]:
    """Return an input set's tensors, each long one repeating its first slices along a dimension.

    Raises:
        MemoryError: they do not fit.
    """
    made = copies(judged)
    size = max(each.tensor.shape[dim] for each in made if each.tensor.dim() > dim)
    kept = max(1, size // SHARE)
    for each in made:
        tensor = each.tensor
        if tensor.dim() <= dim or tensor.shape[dim] != size:
            continue
        index = torch.arange(size, device=tensor.device) % kept
        tensor.copy_(tensor.index_select(dim, index))
    return [each.seal() for each in made]
