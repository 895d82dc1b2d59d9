"""Makes values of the tensor language, each once, in the simplest form that they have."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from math import prod
from typing import TypeGuard, TypeVar

import torch
from torch import fx

from kopt.actors.rewriter.codegen.ir import (
    Bound,
    Const,
    Expand,
    Iota,
    Load,
    Map,
    Permute,
    Reduce,
    ReduceKind,
    Reshape,
    Scalar,
    Scan,
    ScanKind,
    Unsupported,
    Value,
    broadcast,
    contiguous_strides,
    tidy_strides,
)

V = TypeVar("V", bound=Value)


class Builder:
    """Makes values, each once; holds nothing else."""

    def __init__(self, *, windows: bool = False, creates: bool = True) -> None:
        """Begin with no values.

        Args:
            windows: whether the back end reads windows that reach past a tensor's edge.
            creates: whether tensors that are made of numbers alone are made anew, not read.
        """
        self.windows, self.creates = windows, creates
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
        if _is_plain(arg) and arg.strides == tidy_strides(arg.shape, contiguous_strides(arg.shape)):
            strides = contiguous_strides(shape)
            return self._strided(arg.source, strides, arg.offset, shape, arg.dtype)
        if isinstance(arg, Iota) and arg.shape[arg.dim] == prod(arg.shape):
            return self._counted(arg, shape)
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
        if isinstance(arg, Iota):
            return self.iota(shape, order.index(arg.dim), start=arg.start, step=arg.step)
        if _is_plain(arg):
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
        if isinstance(arg, Iota):
            step = 0 if arg.shape[arg.dim] == 1 else arg.step
            return self.iota(wanted, arg.dim, start=arg.start, step=step)
        if _is_plain(arg):
            strides = tuple(
                0 if old == 1 else stride
                for old, stride in zip(arg.shape, arg.strides, strict=True)
            )
            return self._strided(arg.source, strides, arg.offset, wanted, arg.dtype)
        made = Expand(arg=arg, shape=wanted, dtype=arg.dtype)
        return self._once(("expand", arg, wanted), made)

    def _counted(self, arg: Iota, shape: tuple[int, ...]) -> Value:
        """Return numbers along one dimension under another shape: a sum of those along each."""
        parts: list[Value] = []
        for dim, stride in enumerate(contiguous_strides(shape)):
            if shape[dim] > 1:
                start = 0 if parts else arg.start
                parts.append(self.iota(shape, dim, start=start, step=arg.step * stride))
        if not parts:
            return self.const(arg.start, arg.dtype, shape)
        add = functools.partial(self.map, "add", dtype=arg.dtype)
        return functools.reduce(add, parts)

    def _strided(
        self,
        source: fx.Node,
        strides: tuple[int, ...],
        offset: int,
        shape: tuple[int, ...],
        dtype: torch.dtype,
    ) -> Value:
        tidy = tidy_strides(shape, strides)
        made = Load(source=source, strides=tidy, offset=offset, shape=shape, dtype=dtype)
        return self._once(("load", source, tidy, offset, shape), made)

    def strided(
        self,
        like: Load,
        *,
        strides: tuple[int, ...],
        offset: int,
        shape: tuple[int, ...],
        bounds: tuple[Bound, ...] = (),
        fill: float = 0.0,
    ) -> Value:
        """Return another affine read of the tensor that `like` reads."""
        if not bounds:
            return self._strided(like.source, strides, offset, shape, like.dtype)
        tidy = tidy_strides(shape, strides)
        made = Load(
            source=like.source,
            strides=tidy,
            offset=offset,
            shape=shape,
            dtype=like.dtype,
            bounds=bounds,
            fill=fill,
        )
        return self._once(("load", like.source, tidy, offset, shape, bounds, fill), made)

    def _once(self, key: Hashable, made: V) -> Value:
        return self._made.setdefault(key, made)


def _is_plain(arg: Value) -> TypeGuard[Load]:
    """Whether a value is a read with no bounds, which views of it take in."""
    return isinstance(arg, Load) and not arg.bounds
