"""Long reductions in pieces: the row (or the column) is cut, each part reduced, the parts joined.

* A sum or an extreme over many rows with few columns keeps one thread busy; its pieces keep all.
* Σ exp(x - max x) needs the maximum first and so reads a long row twice. A piece that fits the
  registers is read once; the pieces' sums are brought to the common maximum afterwards, by
  Σ_p s_p · exp(m_p - max m) (the online softmax of Milakov and Gimelshein, 2018, cut by pieces).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import prod

import torch

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.ir import Map, Reduce, Value, postorder
from kopt.actors.rewriter.codegen.one_walk import plain
from kopt.actors.rewriter.codegen.rebuild import rebuilt

FEW_COLUMNS = 256
"""A reduction over rows that leaves no more numbers than this is shared out by rows; with more, a
thread has columns of its own, and keeps what passes share."""
MANY_ELEMENTS = 1 << 17
"""Smaller reductions are not worth a second kernel."""
MOST_PIECES = 4096
WASTE = 1.25
"""Most that a piece may grow when rounded up to a power of two."""


def in_row_pieces(builder: Builder, roots: Sequence[Value]) -> list[Value]:
    """Return the roots with reductions over many rows of few columns cut in two steps."""
    made: dict[Value, Value] = {}
    for value in postorder(roots):
        pieces = _row_pieces(value)
        if isinstance(value, Reduce) and pieces:
            arg = made[value.arg]
            wide = arg.dtype == torch.float32 and value.kind in ("sum", "prod")
            cut = _cut(Expr(builder, arg), dim=0, pieces=pieces)
            if wide:
                cut = cut.to(torch.float64)
            dims = [1, *(dim + 1 for dim in value.dims[1:])]
            joined = cut.reduce(value.kind, dims).reduce(value.kind, (0,))
            made[value] = joined.to(value.dtype).value
        else:
            made[value] = rebuilt(builder, value, made)
    return [made[root] for root in roots]


def _row_pieces(value: Value) -> int:
    if not isinstance(value, Reduce) or value.dims[0] != 0:
        return 0
    shape = value.arg.shape
    last_is_kept = len(shape) - 1 not in value.dims
    if not last_is_kept or prod(value.shape) > FEW_COLUMNS or prod(shape) < MANY_ELEMENTS:
        return 0
    return next((n for n in range(64, 1, -1) if shape[0] % n == 0), 0)


def in_soft_pieces(builder: Builder, roots: Sequence[Value], *, longer_than: int) -> list[Value]:
    """Return the roots with Σ exp(x - max x) of rows longer than that cut in pieces.

    Args:
        builder: makes the new values.
        roots: what is to be computed.
        longer_than: most elements of a piece.
    """
    sums = {v: top for v in postorder(roots) if (top := _maximum_below(v)) is not None}
    tops = {top: _soft_pieces(top, longer_than) for top in sums.values()}
    made: dict[Value, Value] = {}
    parts: dict[Value, Expr] = {}
    for value in postorder(roots):
        if isinstance(value, Reduce) and tops.get(value, 0):
            dim = value.dims[0]
            cut = _cut(Expr(builder, made[value.arg]), dim=dim, pieces=tops[value])
            parts[value] = cut.reduce("max", (dim + 1,))
            made[value] = parts[value].reduce("max", (dim,)).value
        elif value in sums and tops[sums[value]]:
            made[value] = _joined_sum(builder, value, sums[value], parts, made)
        else:
            made[value] = rebuilt(builder, value, made)
    return [made[root] for root in roots]


def _joined_sum(
    builder: Builder,
    value: Value,
    top: Reduce,
    parts: Mapping[Value, Expr],
    made: Mapping[Value, Value],
) -> Value:
    dim = top.dims[0]
    part = parts[top]
    x = _cut(Expr(builder, made[top.arg]), dim=dim, pieces=part.shape[dim])
    # A piece of -inf alone, in a row that has more, adds nothing and must not become NaN.
    is_empty = part.compare("eq", -math.inf)
    shift = part.unary("abs").compare("eq", math.inf).where(0.0, part)
    total = (x - shift.unsqueeze(dim + 1)).unary("exp").reduce("sum", (dim + 1,))
    common = Expr(builder, made[_shift_of(value)])
    common = common.reshape((*top.shape[:dim], 1, *top.shape[dim:]))
    share = is_empty.where(0.0, (part - common).unary("exp"))
    whole = common.compare("eq", -math.inf).where(common - common, share)
    return (total * whole).reduce("sum", (dim,)).value


def _shift_of(value: Value) -> Value:
    """Return what Σ exp(x - shift) subtracts, without its repetition along the row."""
    assert isinstance(value, Reduce)
    raised = plain(value.arg)
    assert isinstance(raised, Map)
    difference = raised.args[0]
    assert isinstance(difference, Map)
    return plain(difference.args[1])


def _maximum_below(value: Value) -> Reduce | None:
    """Return max x if the value is Σ exp(x - max x) along one dimension, else None."""
    if not isinstance(value, Reduce) or value.kind != "sum" or len(value.dims) != 1:
        return None
    raised = plain(value.arg)
    if not isinstance(raised, Map) or raised.op != "exp":
        return None
    difference = raised.args[0]
    if not isinstance(difference, Map) or difference.op != "sub":
        return None
    top = plain(difference.args[1])
    if isinstance(top, Map) and top.op == "where":  # no shift by an infinite maximum
        top = plain(top.args[2])
    is_match = (
        isinstance(top, Reduce)
        and top.kind == "max"
        and top.dims == value.dims
        and plain(top.arg) is plain(difference.args[0])
    )
    return top if isinstance(top, Reduce) and is_match else None


def _soft_pieces(top: Reduce, longest: int) -> int:
    """Return into how many pieces of at most `longest` a row divides well, or 0."""
    length = top.arg.shape[top.dims[0]]
    if length <= longest:
        return 0
    for pieces in range(-(-length // longest), min(MOST_PIECES, length // 256) + 1):
        piece = length // pieces
        if length % pieces == 0 and (1 << (piece - 1).bit_length()) <= WASTE * piece:
            return pieces
    return 0


def _cut(x: Expr, *, dim: int, pieces: int) -> Expr:
    return x.reshape((*x.shape[:dim], pieces, x.shape[dim] // pieces, *x.shape[dim + 1 :]))
