"""Statistics of long and of very short rows in one walk instead of two.

Where a row does not fit the registers (or the cache), each pass reads it from memory again; where
it is very short, each pass waits for what the one before has brought together. Two things that are
written as two passes can be had in one:

* Σ (x - mean)² = Σ x² - (Σ x)² / n, with both sums in float64. The squares of float32 numbers are
  exact there, so what cancels is relative to mean² / variance · 1e-16.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.ir import Const, Expand, Map, Reduce, Reshape, Value, postorder
from kopt.actors.rewriter.codegen.rebuild import rebuilt


def one_walk(
    builder: Builder, roots: Sequence[Value], *, longer_than: int, up_to: int = 0
) -> list[Value]:
    """Return the roots with the variances of long and of very short rows rewritten.

    Args:
        builder: makes the new values.
        roots: what is to be computed.
        longer_than: elements of a row up to which two passes cost no more than one.
        up_to: elements of a row that lies in one piece up to which they cost more again.
    """
    made: dict[Value, Value] = {}
    for value in postorder(roots):
        source = _centred(value)
        if isinstance(value, Reduce) and source is not None and _pays(value, longer_than, up_to):
            made[value] = _second_moment(builder, made[source], value)
        else:
            made[value] = rebuilt(builder, value, made)
    return [made[root] for root in roots]


def _length(reduction: Reduce) -> int:
    return prod(reduction.arg.shape[dim] for dim in reduction.dims)


def _pays(reduction: Reduce, longer_than: int, up_to: int) -> bool:
    length, last = _length(reduction), len(reduction.arg.shape) - 1
    return length > longer_than or (length <= up_to and last in reduction.dims)


def _centred(value: Value) -> Value | None:
    """Return x if the value is Σ (x - mean x)² in float32 over the same dimensions, else None."""
    if not isinstance(value, Reduce) or value.kind != "sum" or value.dtype != torch.float32:
        return None
    square = plain(value.arg)
    if not isinstance(square, Map) or square.op != "mul" or square.args[0] is not square.args[1]:
        return None
    difference = square.args[0]
    if not isinstance(difference, Map) or difference.op != "sub":
        return None
    x, mean = difference.args[0], plain(difference.args[1])
    if not isinstance(mean, Map) or mean.op != "div" or x.shape != difference.shape:
        return None
    total, count = plain(mean.args[0]), mean.args[1]
    is_mean = (
        isinstance(total, Reduce)
        and total.kind == "sum"
        and total.dims == value.dims
        and plain(total.arg) is plain(x)
        and isinstance(count, Const)
        and count.number == _length(value)
    )
    return total.arg if isinstance(total, Reduce) and is_mean else None


def plain(value: Value) -> Value:
    """Look through the views that only add or drop size-1 dimensions, or repeat along them."""
    while isinstance(value, Reshape | Expand):
        if isinstance(value, Reshape) and _wide(value.shape) != _wide(value.arg.shape):
            return value
        value = value.arg
    return value


def _wide(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _second_moment(b: Builder, x: Value, old: Reduce) -> Value:
    double = torch.float64
    wide = b.cast(x, double)
    total = b.reduce("sum", wide, old.dims)
    squares = b.reduce("sum", b.map("mul", wide, wide, dtype=double), old.dims)
    share = b.map("div", total, b.const(float(_length(old)), double), dtype=double)
    moment = b.map("sub", squares, b.map("mul", total, share, dtype=double), dtype=double)
    return b.cast(b.map("max", moment, b.const(0.0, double), dtype=double), old.dtype)
