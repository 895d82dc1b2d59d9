"""Tensors by shape and dtype, and what is lent of them, for processes that need no torch for it."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import torch

ITEM_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}
"""Bytes of an element, for each dtype that can be sent, by torch's name."""

MAX_ELEMENTS = 1 << 48
"""More than any machine has room for; torch counts no further than 2**63."""
MAX_DIMENSIONS = 64


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape and dtype of a dense tensor."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def num_bytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]

    def to_json(self) -> list[object]:
        """Return the form that `spec_from_json` takes back."""
        return [list(self.shape), self.dtype]


def spec_from_json(value: object) -> TensorSpec:
    """Return the spec of its JSON form, which may come from an untrusted side.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, list) and len(value) == 2 and str(value[1]) in ITEM_BYTES:
        shape = value[0]
        if (
            isinstance(shape, list)
            and len(shape) <= MAX_DIMENSIONS
            and all(type(n) is int and 0 <= n <= MAX_ELEMENTS for n in shape)
            and math.prod(max(n, 1) for n in shape) <= MAX_ELEMENTS
        ):
            return TensorSpec(tuple(shape), str(value[1]))
    raise ValueError(f"not a tensor spec: {str(value)[:100]}")


Place = Literal["cpu", "cuda"]


class Lent(NamedTuple):
    """A tensor as it is passed to another process."""

    fd: int
    spec: TensorSpec
    place: Place
    is_private: bool
    """What that process writes is seen by nobody else."""


class Shareable(Protocol):
    """A dense tensor that another process can map, in host memory or a GPU's."""

    spec: TensorSpec
    tensor: torch.Tensor
    is_sealed: bool

    def like(self) -> Shareable:
        """Return another of the same form in the same place, its content undefined.

        Raises:
            MemoryError: there is no room.
        """
        ...

    def seal(self) -> Shareable:
        """Let nobody write from now on but through `tensor`; return the tensor itself."""
        ...

    def lent(self) -> AbstractContextManager[Lent]:
        """Give a descriptor for another process to map."""
        ...

    def close(self) -> None:
        """Give the memory back once nobody maps it; a second time does nothing."""
        ...
