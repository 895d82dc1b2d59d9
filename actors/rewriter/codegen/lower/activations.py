"""Activation functions as formulas (torch.nn.functional gives each definition)."""

from __future__ import annotations

import math

from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.lower.table import Argument, Context, lowers

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
SOFTPLUS_LINEAR = 20.0
"""From here on softplus(x) is x, as in torch."""


@lowers("aten.silu.default")
def _(context: Context, x: Expr) -> Expr:
    return x * x.unary("sigmoid")


@lowers("aten.gelu.default")
def _(context: Context, x: Expr, *, approximate: str = "none") -> Expr:
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1.0 + inner.unary("tanh"))
    return 0.5 * x * (1.0 + (x * math.sqrt(0.5)).unary("erf"))


def softplus(x: Expr, *, beta: float = 1.0, threshold: float = SOFTPLUS_LINEAR) -> Expr:
    """Return log(1 + exp(beta·x)) / beta, linear above the threshold."""
    scaled = x if beta == 1 else x * float(beta)
    soft = scaled.unary("exp").unary("log1p")
    soft = soft if beta == 1 else soft / float(beta)
    return scaled.compare("gt", float(threshold)).where(x, soft)


@lowers("aten.softplus.default")
def _(context: Context, x: Expr, beta: float = 1, threshold: float = SOFTPLUS_LINEAR) -> Expr:
    return softplus(x, beta=beta, threshold=threshold)


@lowers("aten.mish.default")
def _(context: Context, x: Expr) -> Expr:
    # tanh(log(1+e)) = ((1+e)^2 - 1) / ((1+e)^2 + 1) = n / (n + 2) with n = e(e + 2): one exp, no
    # log, and no cancellation, because the 1 is taken out before squaring.
    e = x.minimum(SOFTPLUS_LINEAR).unary("exp")
    n = e * (e + 2.0)
    return x * (n / (n + 2.0))


@lowers("aten.log_sigmoid.default")
def _(context: Context, x: Expr) -> Expr:
    return x.minimum(0.0) - (-x.unary("abs")).unary("exp").unary("log1p")


@lowers("aten.hardswish.default")
def _(context: Context, x: Expr) -> Expr:
    return x * (x + 3.0).maximum(0.0).minimum(6.0) / 6.0


@lowers("aten.hardsigmoid.default")
def _(context: Context, x: Expr) -> Expr:
    return (x + 3.0).maximum(0.0).minimum(6.0) / 6.0


@lowers("aten.leaky_relu.default")
def _(context: Context, x: Expr, negative_slope: float = 0.01) -> Expr:
    return x.compare("gt", 0.0).where(x, x * float(negative_slope))


@lowers("aten.elu.default")
def _(
    context: Context, x: Expr, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> Expr:
    low = (x * float(input_scale)).unary("expm1") * float(alpha * scale)
    return x.compare("gt", 0.0).where(x * float(scale), low)


@lowers("aten.selu.default")
def _(context: Context, x: Expr) -> Expr:
    low = x.unary("expm1") * (SELU_ALPHA * SELU_SCALE)
    return x.compare("gt", 0.0).where(x * SELU_SCALE, low)


@lowers("aten.celu.default")
def _(context: Context, x: Expr, alpha: float = 1.0) -> Expr:
    low = (x / float(alpha)).unary("expm1") * float(alpha)
    return x.compare("gt", 0.0).where(x, low)


@lowers("aten.hardshrink.default")
def _(context: Context, x: Expr, lambd: float = 0.5) -> Expr:
    return x.unary("abs").compare("le", float(lambd)).where(0.0, x)


@lowers("aten.softshrink.default")
def _(context: Context, x: Expr, lambd: float = 0.5) -> Expr:
    low = x.compare("lt", -float(lambd)).where(x + float(lambd), x * 0.0)
    return x.compare("gt", float(lambd)).where(x - float(lambd), low)


@lowers("aten.threshold.default")
def _(context: Context, x: Expr, threshold: float, value: float) -> Expr:
    return x.compare("le", float(threshold)).where(float(value), x)


@lowers("aten.prelu.default", "aten._prelu_kernel.default")
def _(context: Context, x: Expr, weight: Expr) -> Expr:
    if len(weight.shape) == 1 and weight.shape[0] > 1 and len(x.shape) > 1:
        weight = weight.reshape((1, weight.shape[0]) + (1,) * (len(x.shape) - 2))
    elif len(weight.shape) == 1 and weight.shape[0] == 1:
        weight = weight.reshape(())
    return x.compare("gt", 0.0).where(x, weight * x)


@lowers("aten.glu.default")
def _(context: Context, x: Expr, dim: int = -1) -> Argument:
    from kopt.actors.rewriter.codegen.lower.views import sliced

    half = x.shape[dim] // 2
    left = sliced(x, dim=dim, start=0, step=1, length=half)
    return left * sliced(x, dim=dim, start=half, step=1, length=half).unary("sigmoid")
