"""Index outputs: which integer outputs are as right as the reference's though not equal.

An argmax may point at any of several equal maxima (exploits F5), and where the values were
computed first, rounding alone decides between two that are nearly equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from kopt.actors.verify.measure import count_unequal
from kopt.ladder import RHO_LIMIT

FLIP_SHARE = 0.01
"""Never more than this share of an integer output may differ by rounding."""


def tied(
    candidate: torch.Tensor, *, reference: torch.Tensor, inputs: Sequence[torch.Tensor]
) -> bool:
    """Return whether both outputs are indices into one input, along one dimension, and tied.

    Tied: wherever they point, the input holds the same value, and the candidate repeats no index
    along the dimension where the reference repeats none (sort, topk). Only floating inputs that
    vary along the dimension count, so that a mask of ones excuses nothing.
    """
    if candidate.dtype not in (torch.int64, torch.int32):
        return False
    for source, dim, ours, theirs in _readings(candidate, reference, inputs):
        size = source.shape[dim]
        if any(int(index.min()) < 0 or int(index.max()) >= size for index in (ours, theirs)):
            continue
        if not bool((source != source.narrow(dim, 0, 1)).any()):
            continue
        if count_unequal(source.gather(dim, ours), right=source.gather(dim, theirs)):
            continue
        if ours.shape[dim] > 1 and not _repeats(theirs, dim) and _repeats(ours, dim):
            continue
        return True
    return False


def _readings(
    candidate: torch.Tensor, reference: torch.Tensor, inputs: Sequence[torch.Tensor]
) -> Iterator[tuple[torch.Tensor, int, torch.Tensor, torch.Tensor]]:
    """Yield (input, dimension, both outputs as indices for gather) for all that fits by shape."""
    ours, theirs = candidate.to(torch.int64), reference.to(torch.int64)
    shape = tuple(reference.shape)
    for source in inputs:
        if not source.is_floating_point() or not source.numel() or source.device != ours.device:
            continue
        if not shape:
            yield source.reshape(-1), 0, ours.reshape(1), theirs.reshape(1)
        for dim in range(source.dim()):
            around = (*source.shape[:dim], *source.shape[dim + 1 :])
            if shape == around:
                yield source, dim, ours.unsqueeze(dim), theirs.unsqueeze(dim)
            if len(shape) == source.dim() and (*shape[:dim], *shape[dim + 1 :]) == around:
                yield source, dim, ours, theirs


def _repeats(indices: torch.Tensor, dim: int) -> bool:
    ordered = indices.sort(dim).values
    size = ordered.shape[dim]
    return bool((ordered.narrow(dim, 1, size - 1) == ordered.narrow(dim, 0, size - 1)).any())


def flipped_like_reference(
    candidate: torch.Tensor, *, reference: torch.Tensor, ref64: torch.Tensor
) -> bool:
    """Return whether rounding explains the difference: ρ for outputs that are counted.

    The elements that differ from float64 may be at most 10 times as many as the reference's own,
    and at most 1 % of all. Where the reference agrees with float64, nothing may differ.
    """
    own = count_unequal(reference, right=ref64)
    limit = min(RHO_LIMIT * own, FLIP_SHARE * reference.numel())
    return own > 0 and count_unequal(candidate, right=ref64) <= limit
