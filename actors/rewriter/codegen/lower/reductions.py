"""ATen reductions, scans and soft maxima as formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod

import torch

from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.ir import Unsupported
from kopt.actors.rewriter.codegen.lower.table import Argument, Context, floating, lowers

Dims = Sequence[int] | int | None


def _dims(dim: Dims) -> tuple[int, ...]:
    if dim is None:
        return ()
    return (dim,) if isinstance(dim, int) else tuple(dim)


@lowers("aten.sum.default")
def _(context: Context, x: Expr, *, dtype: torch.dtype | None = None) -> Expr:
    return floating(context, x).reduce("sum", ())


@lowers("aten.sum.dim_IntList")
def _(
    context: Context,
    x: Expr,
    dim: Dims = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002 -- ATen's own signature, here and below
    *,
    dtype: torch.dtype | None = None,
) -> Expr:
    return floating(context, x).reduce("sum", _dims(dim), keepdim=keepdim)


@lowers("aten.mean.default")
def _(context: Context, x: Expr, *, dtype: torch.dtype | None = None) -> Expr:
    return floating(context, x).mean(())


@lowers("aten.mean.dim")
def _(
    context: Context,
    x: Expr,
    dim: Dims = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    dtype: torch.dtype | None = None,
) -> Expr:
    return floating(context, x).mean(_dims(dim), keepdim=keepdim)


@lowers("aten.prod.default")
def _(context: Context, x: Expr, *, dtype: torch.dtype | None = None) -> Expr:
    return floating(context, x).reduce("prod", ())


@lowers("aten.prod.dim_int")
def _(
    context: Context,
    x: Expr,
    dim: int,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    dtype: torch.dtype | None = None,
) -> Expr:
    return floating(context, x).reduce("prod", (dim,), keepdim=keepdim)


@lowers("aten.amax.default")
def _(
    context: Context,
    x: Expr,
    dim: Dims = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Expr:
    return x.reduce("max", _dims(dim), keepdim=keepdim)


@lowers("aten.amin.default")
def _(
    context: Context,
    x: Expr,
    dim: Dims = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Expr:
    return x.reduce("min", _dims(dim), keepdim=keepdim)


@lowers("aten.max.default")
def _(context: Context, x: Expr) -> Expr:
    return x.reduce("max", ())


@lowers("aten.min.default")
def _(context: Context, x: Expr) -> Expr:
    return x.reduce("min", ())


@lowers("aten.max.dim")
def _(
    context: Context,
    x: Expr,
    dim: int,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> tuple[Expr, Expr]:
    return _extreme("max", x, dim, keepdim=keepdim)


@lowers("aten.min.dim")
def _(
    context: Context,
    x: Expr,
    dim: int,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> tuple[Expr, Expr]:
    return _extreme("min", x, dim, keepdim=keepdim)


@lowers("aten.argmax.default")
def _(
    context: Context,
    x: Expr,
    dim: int | None = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Expr:
    return _argument("max", x, dim, keepdim=keepdim)


@lowers("aten.argmin.default")
def _(
    context: Context,
    x: Expr,
    dim: int | None = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Expr:
    return _argument("min", x, dim, keepdim=keepdim)


def _argument(kind: Argument, x: Expr, dim: int | None, *, keepdim: bool) -> Expr:
    if dim is not None:
        return _extreme(kind, x, dim, keepdim=keepdim)[1]
    if keepdim:
        raise Unsupported("argmax over all dimensions with keepdim")
    return _extreme(kind, x.reshape((prod(x.shape),)), 0, keepdim=False)[1]


def _extreme(kind: Argument, x: Expr, dim: int, *, keepdim: bool) -> tuple[Expr, Expr]:
    """Return the extreme along a dimension and its first index (that of a NaN, if there is one).

    Both come from one reduction: a float32 number has a 32-bit rank of the same order, and rank
    and index together make one integer.
    """
    if not x.shape:
        raise Unsupported("the position in a tensor without dimensions")
    index = x.iota(dim)
    if not x.dtype.is_floating_point or x.dtype == torch.float64:
        top = x.reduce(kind, (dim,), keepdim=True)
        here = x.compare("eq", top)
        if x.dtype.is_floating_point:
            here = here.binary("or", x.compare("ne", x))
        first = here.where(index, x.shape[dim]).reduce("min", (dim,), keepdim=keepdim)
        return x.reduce(kind, (dim,), keepdim=keepdim), first
    last = x.shape[dim] - 1
    rank = x.to(torch.float32).unary(f"rank_{kind}", dtype=torch.int64)
    key = (rank + (last - index if kind == "max" else index)).reduce(kind, (dim,), keepdim=keepdim)
    place = key.unary("low_half")
    value = key.unary("ranked", dtype=torch.float32).to(x.dtype)
    return value, last - place if kind == "max" else place


def _variance(x: Expr, dims: tuple[int, ...], correction: float, *, keepdim: bool) -> Expr:
    rank = len(x.shape)
    over = {dim % rank for dim in dims} if dims else set(range(rank))
    count = prod(x.shape[dim] for dim in over) - correction
    if count <= 0:
        raise Unsupported("a variance without degrees of freedom")
    centred = x - x.mean(dims, keepdim=True)
    return (centred * centred).reduce("sum", dims, keepdim=keepdim) / float(count)


def _correction(
    named: dict[str, Argument], args: tuple[Argument, ...]
) -> tuple[Argument, float, bool]:
    """Return (dims, correction, keepdim) of the three spellings of var and std."""
    if args and isinstance(args[0], bool):  # var(x, unbiased)
        return None, float(args[0]), False
    dims = args[0] if args else named.get("dim")
    if len(args) > 1:  # var.dim(x, dims, unbiased, keepdim)
        return dims, float(args[1]), bool(args[2]) if len(args) > 2 else False
    unbiased = named.get("unbiased", True)
    correction = named.get("correction")
    chosen = float(unbiased) if correction is None else float(correction)
    return dims, chosen, bool(named.get("keepdim", False))


@lowers("aten.var.default", "aten.var.dim", "aten.var.correction")
def _(context: Context, x: Expr, *args: Argument, **named: Argument) -> Expr:
    dims, correction, keepdim = _correction(named, args)
    return _variance(x, _dims(dims), correction, keepdim=keepdim)


@lowers("aten.std.default", "aten.std.dim", "aten.std.correction")
def _(context: Context, x: Expr, *args: Argument, **named: Argument) -> Expr:
    dims, correction, keepdim = _correction(named, args)
    return _variance(x, _dims(dims), correction, keepdim=keepdim).unary("sqrt")


@lowers("aten.var_mean.correction")
def _(context: Context, x: Expr, *args: Argument, **named: Argument) -> tuple[Expr, Expr]:
    dims, correction, keepdim = _correction(named, args)
    over = _dims(dims)
    return _variance(x, over, correction, keepdim=keepdim), x.mean(over, keepdim=keepdim)


@lowers("aten.linalg_vector_norm.default")
def _(
    context: Context,
    x: Expr,
    ord: float = 2,  # noqa: A002 -- ATen's own name
    dim: Dims = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    dtype: torch.dtype | None = None,
) -> Expr:
    return vector_norm(x.to(context.out_dtype), float(ord), _dims(dim), keepdim=keepdim)


@lowers("aten.norm.ScalarOpt_dim", "aten.norm.Scalar")
def _(
    context: Context,
    x: Expr,
    p: float | None = 2,
    dim: Dims = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Expr:
    return vector_norm(x, 2.0 if p is None else float(p), _dims(dim), keepdim=keepdim)


def vector_norm(x: Expr, order: float, dims: tuple[int, ...], *, keepdim: bool = False) -> Expr:
    """Return (Σ |x|^order)^(1/order), or the extreme of |x| for an infinite order."""
    if order == 2:
        return (x * x).reduce("sum", dims, keepdim=keepdim).unary("sqrt")
    size = x.unary("abs")
    if order == 1:
        return size.reduce("sum", dims, keepdim=keepdim)
    if math.isinf(order):
        return size.reduce("max" if order > 0 else "min", dims, keepdim=keepdim)
    if order == 0:
        return x.compare("ne", 0.0).to(x.dtype).reduce("sum", dims, keepdim=keepdim)
    total = size.binary("pow", order).reduce("sum", dims, keepdim=keepdim)
    return total.binary("pow", 1.0 / order)


@lowers("aten.cumsum.default")
def _(context: Context, x: Expr, dim: int, *, dtype: torch.dtype | None = None) -> Expr:
    return floating(context, x).scan("sum", dim)


@lowers("aten.cumprod.default")
def _(context: Context, x: Expr, dim: int, *, dtype: torch.dtype | None = None) -> Expr:
    return floating(context, x).scan("prod", dim)


def softmax(x: Expr, dim: int) -> Expr:
    """Return exp(x - max) / Σ exp(x - max) along a dimension."""
    if not x.shape:
        raise Unsupported("a softmax without dimensions")
    raised = (x - x.reduce("max", (dim,), keepdim=True)).unary("exp")
    return raised * (1.0 / raised.reduce("sum", (dim,), keepdim=True))


def log_softmax(x: Expr, dim: int) -> Expr:
    """Return (x - max) - log Σ exp(x - max) along a dimension."""
    if not x.shape:
        raise Unsupported("a softmax without dimensions")
    shifted = x - x.reduce("max", (dim,), keepdim=True)
    return shifted - shifted.unary("exp").reduce("sum", (dim,), keepdim=True).unary("log")


@lowers("aten.softmax.int", "aten._softmax.default")
def _(context: Context, x: Expr, dim: int, *rest: Argument, **named: Argument) -> Expr:
    return softmax(floating(context, x), dim)


@lowers("aten.log_softmax.int", "aten._log_softmax.default")
def _(context: Context, x: Expr, dim: int, *rest: Argument, **named: Argument) -> Expr:
    return log_softmax(floating(context, x), dim)


@lowers("aten.logsumexp.default")
def _(
    context: Context,
    x: Expr,
    dim: Dims,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Expr:
    dims = _dims(dim)
    if not x.shape:
        return x
    top = x.reduce("max", dims, keepdim=True)
    # A row of -inf alone (or with +inf) has no finite shift; torch then shifts by nothing.
    shift = top.unary("abs").compare("eq", math.inf).where(0.0, top)
    total = (x - shift).unary("exp").reduce("sum", dims, keepdim=True)
    made = total.unary("log") + shift
    return made.reshape(context.out_shape)


@lowers(
    "aten.adaptive_avg_pool1d.default",
    "aten.adaptive_avg_pool2d.default",
    "aten.adaptive_avg_pool3d.default",
)
def _(context: Context, x: Expr, output_size: Sequence[int]) -> Expr:
    if any(size != 1 for size in output_size):
        raise Unsupported("a pooling over windows")
    return x.mean(range(-len(output_size), 0), keepdim=True)
