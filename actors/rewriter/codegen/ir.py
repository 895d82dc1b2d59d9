"""The small tensor language between ATen and the printers: loads, maps, reductions, scans, views.

A value is immutable and compared by identity; `Builder` makes values and never makes the same one
twice, so that two ATen ops which need the same row maximum share it. Shapes are concrete. Every
value carries the dtype it has in torch; the printers compute half precision in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import fx

ReduceKind = Literal["sum", "prod", "max", "min"]
ScanKind = Literal["sum", "prod"]
Scalar = bool | int | float

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "&",
    "or": "|",
}
"""Ops that C++ and Triton spell alike, between their two arguments."""


Bound = tuple[int, int, int]
"""A dimension, and the first and the last index but one past it that lie in the tensor."""


class Unsupported(Exception):
    """This op, or this use of it, has no form in the language; the caller leaves it to torch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Load:
    """Elements of a tensor that exists before the kernel runs, read by an affine index."""

    source: fx.Node
    """The node whose contiguous value is read."""
    strides: tuple[int, ...]
    """Elements to step for each dimension of `shape`; 0 repeats."""
    offset: int
    """Elements to skip first."""
    shape: tuple[int, ...]
    dtype: torch.dtype
    bounds: tuple[Bound, ...] = ()
    """Where there are elements to read."""
    fill: float = 0.0
    """What stands where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Const:
    """One number, everywhere."""

    number: Scalar
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Iota:
    """start + step · (index along `dim`)."""

    dim: int
    start: int
    step: int
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Map:
    """One scalar function of each element; arguments of fewer or size-1 dimensions broadcast."""

    op: str
    args: tuple[Value, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reduce:
    """All elements along `dims` made one; the dimensions go away."""

    kind: ReduceKind
    arg: Value
    dims: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan:
    """Running sum or product along `dim`, the element itself included."""

    kind: ScanKind
    arg: Value
    dim: int
    reverse: bool
    """Whether it runs from the last element to the first."""
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reshape:
    """The same elements in the same order under another shape."""

    arg: Value
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Permute:
    """Dimension d of the result is dimension `dims[d]` of the argument."""

    arg: Value
    dims: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expand:
    """Size-1 dimensions repeated; the argument has as many dimensions as the result."""

    arg: Value
    shape: tuple[int, ...]
    dtype: torch.dtype


Value = Load | Const | Iota | Map | Reduce | Scan | Reshape | Permute | Expand
View = Reshape | Permute | Expand
Compute = Map | Reduce | Scan

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def operands(value: Value) -> tuple[Value, ...]:
    """Return the values that `value` is made of, in order."""
    if isinstance(value, Map):
        return value.args
    if isinstance(value, Load | Const | Iota):
        return ()
    return (value.arg,)


def postorder(roots: Sequence[Value]) -> Iterator[Value]:
    """Yield the roots and all below them once each, operands first."""
    seen: set[Value] = set()
    stack: list[tuple[Value, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        value, entered = stack.pop()
        if entered:
            yield value
        elif value not in seen:
            seen.add(value)
            stack.append((value, True))
            stack.extend((below, False) for below in reversed(operands(value)))


def strides_in_memory(value: Value) -> tuple[int, ...] | None:
    """Return the strides of a computed value, or of a view of one, once it is stored row-major.

    None if the view is no affine read (a reshape of a permutation).
    """
    if isinstance(value, Permute):
        inner = strides_in_memory(value.arg)
        return None if inner is None else tuple(inner[dim] for dim in value.dims)
    if isinstance(value, Expand):
        inner = strides_in_memory(value.arg)
        if inner is None:
            return None
        pairs = zip(value.arg.shape, value.shape, inner, strict=True)
        return tuple(0 if old != new else step for old, new, step in pairs)
    if isinstance(value, Reshape):
        inner = strides_in_memory(value.arg)
        if inner != tidy_strides(value.arg.shape, contiguous_strides(value.arg.shape)):
            return None
    elif not isinstance(value, Compute):
        return None
    return tidy_strides(value.shape, contiguous_strides(value.shape))


def stored_base(value: Value) -> Value | None:
    """Return the computed value that a value is, or is a view of; None for a view of a load."""
    while isinstance(value, View):
        value = value.arg
    return value if isinstance(value, Compute) else None


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the row-major strides of a shape, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that all shapes broadcast to (torch's rule)."""
    return tuple(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]


def tidy_strides(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Give size-1 dimensions stride 0: one spelling, so that equal reads are shared."""
    return tuple(0 if s == 1 else step for s, step in zip(shape, strides, strict=True))
