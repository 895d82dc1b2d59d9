"""ATen views: index arithmetic only. Slices are pushed down to the loads they finally read."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.ir import (
    Const,
    Expand,
    Iota,
    Load,
    Map,
    Permute,
    Reduce,
    Scan,
    Unsupported,
    Value,
)
from kopt.actors.rewriter.codegen.lower.table import Context, lowers

VIEWS = frozenset(
    {
        "aten.view.default",
        "aten.reshape.default",
        "aten._unsafe_view.default",
        "aten.flatten.using_ints",
        "aten.permute.default",
        "aten.unflatten.int",
        "aten.transpose.int",
        "aten.t.default",
        "aten.numpy_T.default",
        "aten.expand.default",
        "aten.expand_as.default",
        "aten.unsqueeze.default",
        "aten.squeeze.default",
        "aten.squeeze.dim",
        "aten.squeeze.dims",
        "aten.slice.Tensor",
        "aten.select.int",
        "aten.alias.default",
        "aten.detach.default",
        "aten.narrow.default",
        "aten.movedim.int",
        "aten.view_as.default",
        "aten.reshape_as.default",
        "aten.mT.default",
    }
)
"""Overloads that torch answers with a view, for nothing."""


@lowers(
    "aten.view.default",
    "aten.reshape.default",
    "aten._unsafe_view.default",
    "aten.flatten.using_ints",
    "aten.unflatten.int",
    "aten.unsqueeze.default",
    "aten.squeeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.view_as.default",
    "aten.reshape_as.default",
)
def _(context: Context, x: Expr, *args: object, **named: object) -> Expr:
    return x.reshape(context.out_shape)


@lowers(
    "aten.alias.default",
    "aten.detach.default",
    "aten.detach_.default",
    "aten.lift_fresh_copy.default",
    "aten.clone.default",
    "aten.contiguous.default",
)
def _(context: Context, x: Expr, *args: object, **named: object) -> Expr:
    return x


@lowers("aten.expand.default", "aten.expand_as.default", "aten.broadcast_to.default")
def _(context: Context, x: Expr, *args: object, **named: object) -> Expr:
    return x.expand(context.out_shape)


@lowers("aten.permute.default")
def _(context: Context, x: Expr, dims: Sequence[int]) -> Expr:
    return x.permute(dims)


@lowers("aten.transpose.int")
def _(context: Context, x: Expr, first: int, second: int) -> Expr:
    return _transposed(x, first, second)


@lowers("aten.t.default", "aten.numpy_T.default", "aten.mT.default")
def _(context: Context, x: Expr) -> Expr:
    if len(x.shape) < 2:
        return x
    if len(x.shape) > 2 and context.out_shape != (*x.shape[:-2], x.shape[-1], x.shape[-2]):
        raise Unsupported("numpy_T of more than two dimensions")
    return _transposed(x, -2, -1)


def _transposed(x: Expr, first: int, second: int) -> Expr:
    order = list(range(len(x.shape)))
    order[first], order[second] = order[second], order[first]
    return x.permute(order)


@lowers("aten.movedim.int")
def _(context: Context, x: Expr, source: int, destination: int) -> Expr:
    order = list(range(len(x.shape)))
    order.insert(destination % len(order), order.pop(source % len(order)))
    return x.permute(order)


@lowers("aten.select.int")
def _(context: Context, x: Expr, dim: int, index: int) -> Expr:
    index = index % x.shape[dim]
    return sliced(x, dim=dim, start=index, step=1, length=1).reshape(context.out_shape)


@lowers("aten.slice.Tensor")
def _(
    context: Context,
    x: Expr,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Expr:
    begin, _end, _step = slice(start, None if end == sys.maxsize else end, step).indices(
        x.shape[dim]
    )
    return sliced(x, dim=dim, start=begin, step=step, length=context.out_shape[dim])


@lowers("aten.narrow.default")
def _(context: Context, x: Expr, dim: int, start: int, length: int) -> Expr:
    return sliced(x, dim=dim, start=start % max(x.shape[dim], 1), step=1, length=length)


@lowers("aten.flip.default")
def _(context: Context, x: Expr, dims: Sequence[int]) -> Expr:
    for dim in dims:
        size = x.shape[dim]
        x = sliced(x, dim=dim, start=size - 1, step=-1, length=size)
    return x


def sliced(x: Expr, *, dim: int, start: int, step: int, length: int) -> Expr:
    """Return elements start, start+step, … along a dimension (`length` of them).

    Raises:
        Unsupported: the slice would have to cut through a reshape or a scan.
    """
    dim %= len(x.shape)
    if length == 0:
        raise Unsupported("an empty slice")
    if (start, step, length) == (0, 1, x.shape[dim]):
        return x
    made = _sliced(x.builder, x.value, dim, start, step, length)
    return Expr(x.builder, made)


def _sliced(b: Builder, x: Value, dim: int, start: int, step: int, length: int) -> Value:
    shape = (*x.shape[:dim], length, *x.shape[dim + 1 :])
    if x.shape[dim] == 1:
        return x if length == 1 else b.expand(x, shape)
    if isinstance(x, Const):
        return b.const(x.number, x.dtype, shape)
    if isinstance(x, Load) and x.bounds:
        raise Unsupported("a slice of windows that reach past the edge")
    if isinstance(x, Load):
        strides = tuple(s * step if d == dim else s for d, s in enumerate(x.strides))
        offset = x.offset + start * x.strides[dim]
        return b.strided(x, strides=strides, offset=offset, shape=shape)
    if isinstance(x, Iota):
        if dim == x.dim:
            return b.iota(shape, dim, start=x.start + start * x.step, step=x.step * step)
        return b.iota(shape, x.dim, start=x.start, step=x.step)
    if isinstance(x, Map):
        args = []
        for arg in x.args:
            own = dim - (len(x.shape) - len(arg.shape))
            cut = own >= 0 and arg.shape[own] > 1
            args.append(_sliced(b, arg, own, start, step, length) if cut else arg)
        return b.map(x.op, *args, dtype=x.dtype)
    if isinstance(x, Permute):
        return b.permute(_sliced(b, x.arg, x.dims[dim], start, step, length), x.dims)
    if isinstance(x, Expand):
        if x.arg.shape[dim] == 1:
            return b.expand(x.arg, shape)
        return b.expand(_sliced(b, x.arg, dim, start, step, length), shape)
    if isinstance(x, Reduce):
        kept = [d for d in range(len(x.arg.shape)) if d not in x.dims]
        arg = _sliced(b, x.arg, kept[dim], start, step, length)
        return b.reduce(x.kind, arg, x.dims)
    if isinstance(x, Scan) and dim != x.dim:
        arg = _sliced(b, x.arg, dim, start, step, length)
        return b.scan(x.kind, arg, x.dim, reverse=x.reverse)
    if isinstance(x, Scan) and (start, step, length) == (x.shape[dim] - 1, -1, x.shape[dim]):
        # A scan read backwards is the reversed scan of its argument read backwards.
        arg = _sliced(b, x.arg, dim, start, step, length)
        return b.scan(x.kind, arg, x.dim, reverse=not x.reverse)
    if isinstance(x, Scan) and (start, step) == (0, 1) and not x.reverse:
        return b.scan(x.kind, _sliced(b, x.arg, dim, start, step, length), x.dim)
    raise Unsupported("a slice of a reshape or a scan")
