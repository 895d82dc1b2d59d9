"""Element-wise ATen ops as formulas. Definitions: torch.nn.functional and the ATen docs."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.ir import Unsupported
from kopt.actors.rewriter.codegen.lower.table import LOWERINGS, Argument, Context, floating, lowers

UNARY = [
    "abs",
    "exp",
    "log",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "sigmoid",
    "erf",
    "floor",
    "ceil",
    "round",
    "trunc",
    "neg",
]
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


def _unary(op: str) -> Callable[[Context, Expr], Expr]:
    def lowering(context: Context, x: Expr) -> Expr:
        if op in ("floor", "ceil", "round", "trunc") and not x.dtype.is_floating_point:
            return x
        return floating(context, x).unary(op)

    return lowering


def _compare(op: str) -> Callable[[Context, Expr, Argument], Expr]:
    def lowering(context: Context, x: Expr, y: Argument) -> Expr:
        return x.compare(op, y)

    return lowering


for _name in UNARY:
    LOWERINGS[f"aten.{_name}.default"] = _unary(_name)
for _name in COMPARE:
    LOWERINGS[f"aten.{_name}.Tensor"] = LOWERINGS[f"aten.{_name}.Scalar"] = _compare(_name)


@lowers("aten.add.Tensor", "aten.add.Scalar")
def _(context: Context, x: Argument, y: Argument, *, alpha: float = 1) -> Expr:
    right = floating(context, y)
    return floating(context, x) + (right if alpha == 1 else right * alpha)


@lowers("aten.sub.Tensor", "aten.sub.Scalar")
def _(context: Context, x: Argument, y: Argument, *, alpha: float = 1) -> Expr:
    right = floating(context, y)
    return floating(context, x) - (right if alpha == 1 else right * alpha)


@lowers("aten.rsub.Tensor", "aten.rsub.Scalar")
def _(context: Context, x: Argument, y: Argument, alpha: float = 1) -> Expr:
    left = floating(context, x)
    return floating(context, y) - (left if alpha == 1 else left * alpha)


@lowers("aten.mul.Tensor", "aten.mul.Scalar")
def _(context: Context, x: Argument, y: Argument) -> Expr:
    if context.out_dtype == torch.bool:
        return floating(context, x).binary("and", floating(context, y))
    return floating(context, x) * floating(context, y)


@lowers("aten.div.Tensor", "aten.div.Scalar")
def _(context: Context, x: Argument, y: Argument) -> Expr:
    return floating(context, x) / floating(context, y)


@lowers("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def _(context: Context, x: Argument, y: Argument, *, rounding_mode: str | None) -> Expr:
    if not context.out_dtype.is_floating_point:
        raise Unsupported("integer division")
    quotient = floating(context, x) / floating(context, y)
    return quotient if rounding_mode is None else quotient.unary(rounding_mode)


@lowers("aten.reciprocal.default")
def _(context: Context, x: Expr) -> Expr:
    return 1.0 / floating(context, x)


@lowers("aten.square.default")
def _(context: Context, x: Expr) -> Expr:
    return x * x


@lowers("aten.pow.Tensor_Scalar")
def _(context: Context, x: Expr, exponent: float) -> Expr:
    x = floating(context, x)
    if exponent == int(exponent) and 1 <= abs(exponent) <= 4:
        square = x * x
        power = {1: x, 2: square, 3: square * x, 4: square * square}[abs(int(exponent))]
        return power if exponent > 0 else 1.0 / power
    if exponent == 0.5:
        return x.unary("sqrt")
    if exponent == -0.5:
        return x.unary("rsqrt")
    if not x.dtype.is_floating_point:
        raise Unsupported("integer power")
    return x.binary("pow", float(exponent))


@lowers("aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def _(context: Context, x: Argument, exponent: Argument) -> Expr:
    if not context.out_dtype.is_floating_point:
        raise Unsupported("integer power")
    return floating(context, x).binary("pow", floating(context, exponent))


@lowers("aten.maximum.default", "aten.max.other")
def _(context: Context, x: Expr, y: Expr) -> Expr:
    return floating(context, x).maximum(floating(context, y))


@lowers("aten.minimum.default", "aten.min.other")
def _(context: Context, x: Expr, y: Expr) -> Expr:
    return floating(context, x).minimum(floating(context, y))


@lowers("aten.clamp.default", "aten.clamp.Tensor", "aten.clip.default")
def _(
    context: Context, x: Expr, low: Argument = None, high: Argument = None, **named: Argument
) -> Expr:
    low, high = named.get("min", low), named.get("max", high)
    x = floating(context, x)
    if low is not None:
        x = x.maximum(floating(context, low))
    return x if high is None else x.minimum(floating(context, high))


@lowers("aten.hardtanh.default")
def _(context: Context, x: Expr, min_val: float = -1.0, max_val: float = 1.0) -> Expr:
    return x.maximum(x.lift(min_val)).minimum(x.lift(max_val))


@lowers("aten.clamp_min.default", "aten.clamp_min.Tensor")
def _(context: Context, x: Expr, low: Argument) -> Expr:
    return floating(context, x).maximum(floating(context, low))


@lowers("aten.clamp_max.default", "aten.clamp_max.Tensor")
def _(context: Context, x: Expr, high: Argument) -> Expr:
    return floating(context, x).minimum(floating(context, high))


@lowers("aten.relu.default")
def _(context: Context, x: Expr) -> Expr:
    return x.maximum(x.lift(0))


@lowers("aten.relu6.default")
def _(context: Context, x: Expr) -> Expr:
    return x.maximum(x.lift(0)).minimum(x.lift(6))


@lowers("aten.sign.default", "aten.sgn.default")
def _(context: Context, x: Expr) -> Expr:
    zero = x.lift(0)
    positive = x.compare("gt", zero).to(x.dtype)
    return positive - x.compare("lt", zero).to(x.dtype)


@lowers("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther")
def _(context: Context, condition: Expr, yes: Argument, no: Argument) -> Expr:
    return condition.where(floating(context, yes), floating(context, no))


@lowers("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def _(context: Context, x: Expr, mask: Expr, number: Argument) -> Expr:
    return mask.where(floating(context, number), x)


@lowers("aten.logical_and.default", "aten.bitwise_and.Tensor")
def _(context: Context, x: Expr, y: Expr) -> Expr:
    return _boolean(context, x).binary("and", _boolean(context, y))


@lowers("aten.logical_or.default", "aten.bitwise_or.Tensor")
def _(context: Context, x: Expr, y: Expr) -> Expr:
    return _boolean(context, x).binary("or", _boolean(context, y))


@lowers("aten.logical_not.default", "aten.bitwise_not.default")
def _(context: Context, x: Expr) -> Expr:
    return _boolean(context, x).unary("not")


def _boolean(context: Context, x: Expr) -> Expr:
    if context.out_dtype != torch.bool:
        raise Unsupported("bitwise operations on integers")
    return x if x.dtype == torch.bool else x.compare("ne", x.lift(0))


@lowers("aten.isnan.default")
def _(context: Context, x: Expr) -> Expr:
    return x.compare("ne", x)


@lowers("aten.isinf.default")
def _(context: Context, x: Expr) -> Expr:
    return x.unary("abs").compare("eq", math.inf)


@lowers("aten._to_copy.default", "aten.to.dtype", "aten.type_as.default")
def _(context: Context, x: Expr, *args: Argument, **named: Argument) -> Expr:
    if named.get("device") is not None or named.get("layout") is not None:
        raise Unsupported("a copy to another device or layout")
    return x.to(context.out_dtype)


@lowers("aten.lerp.Scalar", "aten.lerp.Tensor")
def _(context: Context, start: Expr, end: Expr, weight: Argument) -> Expr:
    return start + (end - start) * floating(context, weight)


@lowers("aten.addcmul.default")
def _(context: Context, x: Expr, left: Expr, right: Expr, *, value: float = 1) -> Expr:
    return x + left * right * float(value)


@lowers("aten.addcdiv.default")
def _(context: Context, x: Expr, left: Expr, right: Expr, *, value: float = 1) -> Expr:
    return x + left / right * float(value)


def _triangle(op: str) -> Callable[..., Expr]:
    def lowering(context: Context, x: Expr, diagonal: int = 0) -> Expr:
        beyond = context.full(0, torch.int64).to(x.dtype)
        return (x.iota(-1) - x.iota(-2)).compare(op, diagonal).where(x, beyond)

    return lowering


lowers("aten.triu.default")(_triangle("ge"))
lowers("aten.tril.default")(_triangle("le"))
