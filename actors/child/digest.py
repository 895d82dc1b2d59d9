"""The digest of a call's outputs: a sum over their bits, which nobody knows without all of them.

Read at memory speed, on any device, without waiting for it; the supervisor takes the same of what
it is handed over. A sum of bit patterns is no linear function of the values: it cannot be had
from partial results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

_WORD_BYTES = 8
SERIAL_WORDS = 32_768
"""torch sums no more than this on one thread; a few such sums are less disturbed by whatever else
the cores do than one on all of them."""
MANY_WORDS = 1 << 18


def tensors_in(value: object) -> list[torch.Tensor]:
    """Return the tensors of a call's outputs, dicts by sorted key as `plain.encode` has them."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [each for key in sorted(value, key=str) for each in tensors_in(value[key])]
    if isinstance(value, list | tuple):
        return [each for item in value for each in tensors_in(item)]
    return []


def memory_order(tensor: torch.Tensor) -> list[int]:
    """Return the dimensions as memory runs through them, the slowest first.

    As they are where the tensor has holes: it is read by its own order then.
    """
    own = list(range(tensor.dim()))
    if tensor.is_contiguous():
        return own
    order = sorted(own, key=tensor.stride, reverse=True)
    return order if tensor.permute(order).is_contiguous() else own


def digest(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the digest of a call's outputs: an int64 on the device of the first of them.

    Args:
        tensors: of the outputs, each read in its own memory order.
    """
    total: torch.Tensor | None = None
    for tensor in tensors:
        order = memory_order(tensor)
        part = word_sum(tensor.permute(order) if order != sorted(order) else tensor)
        total = part if total is None else total + part.to(total.device)
    return torch.zeros((), dtype=torch.int64) if total is None else total


def word_sum(tensor: torch.Tensor) -> torch.Tensor:
    """Return the sum modulo 2**64 of a tensor's bytes as words of eight; a rest counts by bytes."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    tensor = tensor.resolve_neg()
    if not tensor.is_contiguous() and _has_whole_words(tensor):
        return _sum(tensor.view(torch.int64))  # rows with gaps between them need no copy
    flat = tensor.contiguous().view(-1)
    size = flat.element_size()
    rest = flat.numel() * size % _WORD_BYTES
    if flat.storage_offset() * size % _WORD_BYTES:
        flat = flat.clone()
    if not rest:
        return _sum(flat.view(torch.int64))
    whole = flat.numel() - rest // size
    words = _sum(flat[:whole].view(torch.int64))
    return words + flat[whole:].view(torch.uint8).sum(dtype=torch.int64)


def _has_whole_words(tensor: torch.Tensor) -> bool:
    """Whether every row of a tensor is made of words, at places of words."""
    size = tensor.element_size()
    *strides, last = tensor.stride() or (0,)
    return (
        tensor.numel() > 0
        and last == 1
        and not any(
            bytes_ % _WORD_BYTES
            for bytes_ in (
                tensor.shape[-1] * size,
                tensor.storage_offset() * size,
                *(stride * size for stride in strides),
            )
        )
    )


def _sum(words: torch.Tensor) -> torch.Tensor:
    """A sum that takes threads on a CPU only where it is worth their waking."""
    if words.device.type != "cpu" or not SERIAL_WORDS < words.numel() <= MANY_WORDS:
        return words.sum()
    rows = max(1, SERIAL_WORDS * words.shape[0] // words.numel())
    total = torch.zeros((), dtype=torch.int64)
    for begin in range(0, words.shape[0], rows):
        total += words[begin : begin + rows].sum()
    return total
