"""How a tensor lies in memory: in as few dimensions, and as large pieces, as tell."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

MOST_BYTES = 16
"""Of a piece: what a thread of a GPU reads at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Pieces of some bytes each, in dimensions; sizes and strides count pieces."""

    piece_bytes: int
    sizes: list[int]
    strides: list[int]

    @property
    def num_pieces(self) -> int:
        """Return how many pieces there are."""
        return math.prod(self.sizes)


def layout_of(tensor: torch.Tensor, *, min_dimensions: int) -> Layout:
    """Return the layout of a tensor, slowest dimension first.

    Dimensions that lie one after the other are one. Neighbours that are always together are one
    piece: a matrix whose rows are apart has far fewer pieces than elements.

    Args:
        tensor: its elements are of 1, 2, 4, 8 or 16 bytes, and lie at multiples of that.
        min_dimensions: so many, the first of them of one piece each where fewer would do.
    """
    sizes: list[int] = []
    strides: list[int] = []
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        if size == 1:
            continue
        if sizes and strides[-1] == size * stride:
            sizes[-1] *= size
            strides[-1] = stride
        else:
            sizes.append(size)
            strides.append(stride)
    piece_bytes, first = tensor.element_size(), tensor.data_ptr()
    while piece_bytes < MOST_BYTES and _go_together(first, piece_bytes, sizes, strides):
        piece_bytes *= 2
        sizes[-1] //= 2
        strides[:-1] = [stride // 2 for stride in strides[:-1]]
    missing = max(min_dimensions - len(sizes), 0)
    return Layout(
        piece_bytes=piece_bytes, sizes=[1] * missing + sizes, strides=[0] * missing + strides
    )


def _go_together(first: int, piece_bytes: int, sizes: list[int], strides: list[int]) -> bool:
    """Whether two pieces always lie side by side, at an address that they can be read from."""
    return (
        bool(strides)
        and strides[-1] == 1
        and sizes[-1] % 2 == 0
        and all(stride % 2 == 0 for stride in strides[:-1])
        and first % (2 * piece_bytes) == 0
    )
