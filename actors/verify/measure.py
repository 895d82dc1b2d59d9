"""Measuring tensors against each other in float64, a chunk at a time.

A tensor of the larger problems fills gigabytes, and an allclose makes four of it (exploits F6):
nothing here holds more than a chunk besides its arguments, and nothing waits for the device
before the last chunk is under way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from kopt.ladder import Distances

CHUNK_ELEMENTS = 1 << 20
"""Elements at a time at most: eight float64 temporaries of a chunk are 64 MiB."""
CPU_CHUNK_ELEMENTS = 1 << 14
"""The same on a CPU: they stay in its cache, and torch splits nothing this small over threads,
whose barriers take a hundred times as long as the work where the cores are shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One output tensor, measured."""

    distances: Distances
    candidate_norm: float
    """‖candidate - ref64‖₂."""
    reference_norm: float
    """‖reference - ref64‖₂."""
    scale_norm: float
    """‖ref64‖₂."""


def chunks(*tensors: torch.Tensor) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """Yield (index of the first element in row-major order, 1-d pieces), one piece per tensor.

    Whatever the strides, at most a chunk is copied.

    Args:
        tensors: at least one, all of one shape.
    """
    size = CHUNK_ELEMENTS
    if tensors[0].device.type == "cpu":
        size = min(size, CPU_CHUNK_ELEMENTS)
    if all(tensor.is_contiguous() for tensor in tensors):
        tensors = tuple(tensor.view(-1) for tensor in tensors)
    yield from _chunks(tensors, start=0, size=size)


def _chunks(
    tensors: tuple[torch.Tensor, ...], *, start: int, size: int
) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    count = tensors[0].numel()
    if count == 0:
        return
    if count <= size:
        yield start, tuple(tensor.reshape(-1) for tensor in tensors)
        return
    row = count // tensors[0].shape[0]
    if row > size:
        for index in range(tensors[0].shape[0]):
            rows = tuple(tensor[index] for tensor in tensors)
            yield from _chunks(rows, start=start + index * row, size=size)
        return
    num_rows = size // row
    for first in range(0, tensors[0].shape[0], num_rows):
        pieces = tuple(tensor[first : first + num_rows].reshape(-1) for tensor in tensors)
        yield start + first * row, pieces


def as_float64(piece: torch.Tensor) -> torch.Tensor:
    """Return a piece as real float64: bools as 0 and 1, complex numbers as (real, imaginary)."""
    if piece.is_complex():
        return torch.view_as_real(piece.to(torch.complex128).resolve_conj()).reshape(-1)
    return piece.to(torch.float64)


def measure(
    candidate: torch.Tensor, *, reference: torch.Tensor, ref64: torch.Tensor, rtol: float
) -> Measurement:
    """Measure one output tensor; see `kopt.actors.verify.compare.distances`.

    Raises:
        ValueError: shapes differ, or a reference is not finite.
    """
    if not candidate.shape == reference.shape == ref64.shape:
        raise ValueError(
            f"shapes must agree, got candidate {tuple(candidate.shape)}, "
            f"reference {tuple(reference.shape)}, float64 {tuple(ref64.shape)}"
        )
    device = reference.device
    zeros = torch.zeros(4, dtype=torch.float64, device=device)
    peaks, squares = zeros, zeros[:3]
    for _, pieces in chunks(candidate, reference, ref64):
        ours, theirs, exact = (as_float64(piece) for piece in pieces)
        off, own = ours - exact, theirs - exact
        excess = (ours - theirs).abs() - rtol * theirs.abs()
        found = torch.stack([off.abs().max(), own.abs().max(), exact.abs().max(), excess.max()])
        peaks = torch.maximum(peaks, found)  # keeps a NaN
        # Not by dot: BLAS takes threads for any size.
        squares = squares + torch.stack([part.square().sum() for part in (off, own, exact)])
    far, own_error, scale, over = (float(value) for value in peaks.tolist())
    if not (math.isfinite(own_error) and math.isfinite(scale)):
        raise ValueError("the reference's output is not finite; drop this input set")
    norms = [math.sqrt(value) if value >= 0.0 else math.inf for value in squares.tolist()]
    return Measurement(
        distances=Distances(
            candidate=_or_inf(far), reference=own_error, scale=scale, excess=_or_inf(over)
        ),
        candidate_norm=norms[0],
        reference_norm=norms[1],
        scale_norm=norms[2],
    )


def count_unequal(left: torch.Tensor, *, right: torch.Tensor) -> int:
    """Return in how many elements two tensors of one shape differ."""
    total = torch.zeros((), dtype=torch.int64, device=left.device)
    for _, (ours, theirs) in chunks(left, right):
        total = total + (ours != theirs).sum()
    return int(total)


def first_where(
    wrong: Callable[..., torch.Tensor], *tensors: torch.Tensor
) -> tuple[tuple[int, ...], int] | None:
    """Return (index of the first wrong element, how many are wrong), or None for none.

    Args:
        wrong: from one 1-d piece of each tensor to a bool tensor of their length.
        tensors: all of one shape.
    """
    first, count = -1, 0
    for start, pieces in chunks(*tensors):
        mask = wrong(*pieces)
        found = int(mask.sum())
        if found and first < 0:
            first = start + int(mask.to(torch.uint8).argmax())
        count += found
    if first < 0:
        return None
    index: list[int] = []
    for size in reversed(tensors[0].shape):
        index.insert(0, first % size)
        first //= size
    return tuple(index), count


def _or_inf(value: float) -> float:
    return math.inf if math.isnan(value) else value
