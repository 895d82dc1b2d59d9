"""The small tensor language between ATen and the printers: loads, maps, reductions, scans, views.

A value is immutable and compared by identity; `Builder` makes values and never makes the same one
twice, so that two ATen ops which need the same row maximum share it. Shapes are concrete. Every
value carries the dtype it has in torch; the printers compute half precision in float32.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeVar

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
V = TypeVar("V", bound=Value)

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
        if inner != _tidy(value.arg.shape, contiguous_strides(value.arg.shape)):
            return None
    elif not isinstance(value, Compute):
        return None
    return _tidy(value.shape, contiguous_strides(value.shape))


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


class Builder:
    """Makes values, each once; holds nothing else."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Value] = {}

    def load(self, source: fx.Node) -> Value:
        """Return the whole value of a node, read as if contiguous."""
        tensor = source.meta["val"]
        shape = tuple(int(size) for size in tensor.shape)
        return self._strided(source, contiguous_strides(shape), 0, shape, tensor.dtype)

    def const(self, number: Scalar, dtype: torch.dtype, shape: tuple[int, ...] = ()) -> Value:
        """Return one number, by default without dimensions."""
        key = ("const", repr(number), shape, dtype)
        return self._once(key, Const(number=number, shape=shape, dtype=dtype))

    def iota(self, shape: tuple[int, ...], dim: int, *, start: int = 0, step: int = 1) -> Value:
        """Return the int64 index along one dimension of a shape."""
        made = Iota(dim=dim, start=start, step=step, shape=shape, dtype=torch.int64)
        return self._once(("iota", shape, dim, start, step), made)

    def map(self, op: str, *args: Value, dtype: torch.dtype) -> Value:
        """Return a scalar function of its arguments; its result has `dtype`."""
        shape = broadcast([arg.shape for arg in args])
        made = Map(op=op, args=args, shape=shape, dtype=dtype)
        return self._once(("map", op, args, dtype), made)

    def cast(self, arg: Value, dtype: torch.dtype) -> Value:
        """Return the argument as another dtype; itself if it has it."""
        if arg.dtype == dtype:
            return arg
        if isinstance(arg, Const):
            number: Scalar = arg.number
            if dtype == torch.bool:
                number = bool(number)
            elif dtype.is_floating_point:
                number = float(number)
            else:
                number = int(number)
            return self.const(number, dtype, arg.shape)
        return self.map("cast", arg, dtype=dtype)

    def reduce(
        self, kind: ReduceKind, arg: Value, dims: Sequence[int], *, keepdim: bool = False
    ) -> Value:
        """Return a reduction over dims (negative ones allowed; none given means all)."""
        rank = len(arg.shape)
        over = tuple(sorted({dim % rank for dim in dims})) if dims else tuple(range(rank))
        if prod(arg.shape[dim] for dim in over) == 0:
            raise Unsupported("a reduction over nothing")
        if arg.dtype == torch.bool:
            raise Unsupported("a reduction of booleans")
        kept = tuple(size for dim, size in enumerate(arg.shape) if dim not in over)
        over = tuple(dim for dim in over if arg.shape[dim] != 1)
        if over:
            flat = self.reshape(arg, tuple(s for d, s in enumerate(arg.shape) if s != 1))
            places = [d for d, s in enumerate(arg.shape) if s != 1]
            dims_in_flat = tuple(places.index(dim) for dim in over)
            shape = tuple(s for d, s in enumerate(flat.shape) if d not in dims_in_flat)
            made = Reduce(kind=kind, arg=flat, dims=dims_in_flat, shape=shape, dtype=arg.dtype)
            result = self._once(("reduce", kind, flat, dims_in_flat), made)
        else:
            result = arg
        if keepdim:
            gone = {dim % rank for dim in dims} if dims else set(range(rank))
            kept = tuple(1 if dim in gone else size for dim, size in enumerate(arg.shape))
        return self.reshape(result, kept)

    def scan(self, kind: ScanKind, arg: Value, dim: int, *, reverse: bool = False) -> Value:
        """Return a running sum or product along one dimension, from its end if `reverse`."""
        dim %= len(arg.shape)
        if arg.shape[dim] == 1:
            return arg
        made = Scan(kind=kind, arg=arg, dim=dim, reverse=reverse, shape=arg.shape, dtype=arg.dtype)
        return self._once(("scan", kind, arg, dim, reverse), made)

    def reshape(self, arg: Value, shape: tuple[int, ...]) -> Value:
        """Return the same elements in the same order under another shape."""
        if arg.shape == shape:
            return arg
        if prod(shape) != prod(arg.shape):
            raise Unsupported(f"a reshape of {arg.shape} to {shape}")
        if isinstance(arg, Const):
            return self.const(arg.number, arg.dtype, shape)
        if isinstance(arg, Load) and arg.strides == _tidy(arg.shape, contiguous_strides(arg.shape)):
            strides = contiguous_strides(shape)
            return self._strided(arg.source, strides, arg.offset, shape, arg.dtype)
        if isinstance(arg, Reshape):
            return self.reshape(arg.arg, shape)
        made = Reshape(arg=arg, shape=shape, dtype=arg.dtype)
        return self._once(("reshape", arg, shape), made)

    def permute(self, arg: Value, dims: Sequence[int]) -> Value:
        """Return the argument with its dimensions in another order."""
        order = tuple(dim % len(arg.shape) for dim in dims)
        if order == tuple(range(len(order))):
            return arg
        shape = tuple(arg.shape[dim] for dim in order)
        if isinstance(arg, Const):
            return self.const(arg.number, arg.dtype, shape)
        if isinstance(arg, Load):
            strides = tuple(arg.strides[dim] for dim in order)
            return self._strided(arg.source, strides, arg.offset, shape, arg.dtype)
        made = Permute(arg=arg, dims=order, shape=shape, dtype=arg.dtype)
        return self._once(("permute", arg, order), made)

    def expand(self, arg: Value, shape: Sequence[int]) -> Value:
        """Return the argument repeated to a shape (-1 keeps a size; new dimensions in front)."""
        front = len(shape) - len(arg.shape)
        arg = self.reshape(arg, (1,) * front + arg.shape)
        wanted = tuple(
            old if new == -1 else int(new) for new, old in zip(shape, arg.shape, strict=True)
        )
        if wanted == arg.shape:
            return arg
        if isinstance(arg, Const):
            return self.const(arg.number, arg.dtype, wanted)
        if isinstance(arg, Load):
            strides = tuple(
                0 if old == 1 else stride
                for old, stride in zip(arg.shape, arg.strides, strict=True)
            )
            return self._strided(arg.source, strides, arg.offset, wanted, arg.dtype)
        made = Expand(arg=arg, shape=wanted, dtype=arg.dtype)
        return self._once(("expand", arg, wanted), made)

    def _strided(
        self,
        source: fx.Node,
        strides: tuple[int, ...],
        offset: int,
        shape: tuple[int, ...],
        dtype: torch.dtype,
    ) -> Value:
        tidy = _tidy(shape, strides)
        made = Load(source=source, strides=tidy, offset=offset, shape=shape, dtype=dtype)
        return self._once(("load", source, tidy, offset, shape), made)

    def strided(
        self, like: Load, *, strides: tuple[int, ...], offset: int, shape: tuple[int, ...]
    ) -> Value:
        """Return another affine read of the tensor that `like` reads."""
        return self._strided(like.source, strides, offset, shape, like.dtype)

    def _once(self, key: Hashable, made: V) -> Value:
        return self._made.setdefault(key, made)


def _tidy(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Give size-1 dimensions stride 0: one spelling, so that equal reads are shared."""
    return tuple(0 if s == 1 else step for s, step in zip(shape, strides, strict=True))
