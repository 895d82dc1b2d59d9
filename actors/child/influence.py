"""Whether one element of an input changes the outputs of a call: by their bits, by their values.

Bits tell most, and cost least. Rounding hides what one element of a large sum does, and an atomic
addition makes equal calls differ: there the values of a float64 form of the call tell, by how much
they move. For children of trusted code alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from kopt.actors.child.digest import digest, tensors_in

CHUNK = 1 << 24
"""Elements of outputs that are compared at a time."""
ULPS = 64
"""Of float64, as a share of an output's size: what is below may be rounding."""
NOISE = 8.0
"""Times the distance of two equal calls."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call, to be made again and again."""

    run: Callable[[], object]
    """Calls the module on arguments that hold the tensors, equally seeded each time."""
    tensors: Sequence[torch.Tensor]
    """Of the arguments, dense; they are as before afterwards."""

    def outputs(self) -> list[torch.Tensor]:
        """Return the tensors of the outputs."""
        return tensors_in(self.run())


class Bits:
    """Sees any change of the outputs' bits, in the problem's own precision."""

    NUM_CALLS = 2
    """That making it takes."""

    def __init__(self, call: Call) -> None:
        """Make the call twice: where equal calls differ, nothing can be seen."""
        self.tensors = call.tensors
        self._call = call
        outputs = call.outputs()
        self.dtypes = [each.dtype for each in outputs]
        self._before = int(digest(outputs))
        self._is_blind = int(digest(call.outputs())) != self._before
        self.sees_all = not self._is_blind and not any(map(_is_rounded, self.dtypes))
        """Whether what it does not see is not there."""

    def effect(self, size: int) -> float:
        """Return infinity where the outputs are others now than they were, else 0."""
        del size
        if self._is_blind or int(digest(self._call.outputs())) == self._before:
            return 0.0
        return math.inf


class Values:
    """Sees a change in float64, and how much all elements together would do.

    An element moves c outputs of M by d at most; the input has N of them, so that N·c/M move each
    output. What they do together, d·N·c/M, has to stand out of the output's rounding in its own
    dtype; otherwise a kernel may leave them all out unseen.
    """

    def __init__(self, call: Call, *, dtypes: Sequence[torch.dtype]) -> None:
        """Make the call twice, to learn what differs between equal calls.

        Args:
            call: in float64.
            dtypes: of the outputs in the problem's own precision, in the same order.
        """
        self.tensors = call.tensors
        self._call = call
        self._dtypes = dtypes
        self._before = [each.clone() for each in call.outputs()]
        self._sizes = [_root_mean_square(each) for each in self._before]
        self._noise = [most for most, _ in self._moved()]
        self.sees_all = not any(self._noise)
        """Whether what it does not see does not count."""

    def effect(self, size: int) -> float:
        """Return what all elements would do to an output, in units of its rounding; 0 for nothing.

        Infinite for outputs of whole numbers, which nothing rounds.

        Args:
            size: elements of the input of which one was changed.
        """
        return max(
            (self._effect(at, *moved, size=size) for at, moved in enumerate(self._moved())),
            default=0.0,
        )

    def _moved(self) -> list[tuple[float, int]]:
        """Make the call, and return of each output how far it moved, and in how many elements."""
        outputs = self._call.outputs()
        if len(outputs) != len(self._before):
            return [(math.inf, 1)] * len(self._before)
        return [_moved(now, before) for now, before in zip(outputs, self._before, strict=True)]

    def _effect(self, at: int, most: float, num_moved: int, *, size: int) -> float:
        if most <= NOISE * self._noise[at]:
            return 0.0
        if not _is_rounded(self._dtypes[at]):
            return math.inf
        extent = self._sizes[at]
        if most <= ULPS * torch.finfo(torch.float64).eps * extent:
            return 0.0
        together = most * size * num_moved / self._before[at].numel()
        rounding = torch.finfo(self._dtypes[at]).eps * extent
        return together / rounding if rounding else math.inf


def _moved(now: torch.Tensor, before: torch.Tensor) -> tuple[float, int]:
    """Return the greatest distance of two outputs, and the number of elements that differ.

    Not a number in both is no difference, in one of them an infinite one.
    """
    if now.shape != before.shape:
        return math.inf, now.numel()
    most, num_moved = 0.0, 0
    for mine, theirs in zip(_chunks(now), _chunks(before), strict=True):
        same = (mine == theirs) | ((mine != mine) & (theirs != theirs))
        num_moved += int(same.numel() - same.sum())
        distance = (mine.double() - theirs.double()).abs().masked_fill_(same, 0.0)
        if distance.numel():
            most = max(most, float(distance.nan_to_num_(nan=math.inf).max()))
    return most, num_moved


def _is_rounded(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _root_mean_square(tensor: torch.Tensor) -> float:
    total, number = 0.0, 0
    for part in _chunks(tensor):
        finite = part[part.isfinite()].double()
        total += float(finite.square().sum())
        number += finite.numel()
    return math.sqrt(total / number) if number else 0.0


def _chunks(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    flat = tensor.reshape(-1)
    for begin in range(0, flat.numel(), CHUNK):
        yield flat[begin : begin + CHUNK]
