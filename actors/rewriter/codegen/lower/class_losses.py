"""Losses of classes, with weights, smoothing and a class that does not count."""

from __future__ import annotations

from math import prod

from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.lower.reductions import log_softmax
from kopt.actors.rewriter.codegen.lower.table import Context, lowers


@lowers("aten.cross_entropy_loss.default")
def _(
    context: Context,
    x: Expr,
    target: Expr,
    weight: Expr | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Expr:
    dim = 1 if len(x.shape) > 1 else 0
    if target.dtype.is_floating_point:
        return _of_probabilities(x, target, weight, reduction, label_smoothing, dim=dim)
    top = x.reduce("max", (dim,), keepdim=True)
    shifted = x - top
    log_total = shifted.unary("exp").reduce("sum", (dim,)).unary("log")
    picked = _picked(shifted, target, dim) - log_total
    if not label_smoothing:
        return _class_loss(picked, target, weight, reduction, ignore_index)
    if weight is None:
        spread = shifted.reduce("sum", (dim,)) - log_total * float(x.shape[dim])
    else:
        logs = shifted - log_total.unsqueeze(dim)
        spread = (logs * _along(weight, x, dim)).reduce("sum", (dim,))
    share = _share(picked, target, weight, ignore_index)
    counted = target.compare("ne", ignore_index)
    loss = picked * share * (1.0 - label_smoothing) + spread * (label_smoothing / x.shape[dim])
    loss = counted.where(-loss, 0.0)
    return _weighted(loss, share, reduction)


@lowers("aten.nll_loss.default", "aten.nll_loss_nd.default", "aten.nll_loss2d.default")
def _(
    context: Context,
    x: Expr,
    target: Expr,
    weight: Expr | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> Expr:
    dim = 1 if len(x.shape) > 1 else 0
    return _class_loss(_picked(x, target, dim), target, weight, reduction, ignore_index)


def _of_probabilities(
    x: Expr, target: Expr, weight: Expr | None, reduction: int, smoothing: float, *, dim: int
) -> Expr:
    wanted = target
    if smoothing:
        wanted = target * (1.0 - smoothing) + smoothing / x.shape[dim]
    terms = log_softmax(x, dim) * wanted
    if weight is not None:
        terms = terms * _along(weight, x, dim)
    loss = -terms.reduce("sum", (dim,))
    if reduction == 0:
        return loss
    total = loss.reduce("sum", ())
    rows = prod(size for place, size in enumerate(x.shape) if place != dim)
    return total / float(max(1, rows)) if reduction == 1 else total


def _along(weight: Expr, x: Expr, dim: int) -> Expr:
    """Return a weight of each class, in the shape of x."""
    ones = tuple(size if place == dim else 1 for place, size in enumerate(x.shape))
    return weight.reshape(ones).expand(x.shape)


def _picked(x: Expr, target: Expr, dim: int) -> Expr:
    """Return x at the target's index along dim: a sum of which one term is not 0."""
    here = x.iota(dim).compare("eq", target.unsqueeze(dim))
    return here.where(x, 0.0).reduce("sum", (dim,))


def _share(log_probability: Expr, target: Expr, weight: Expr | None, ignore_index: int) -> Expr:
    """Return how much each row counts: 0 where its class is the one that does not."""
    share = target.compare("ne", ignore_index).to(log_probability.dtype)
    if weight is None:
        return share
    classes = weight.reshape((1,) * len(target.shape) + weight.shape)
    wide = classes.expand((*target.shape, *weight.shape))
    return share * _picked(wide, target, len(target.shape))


def _class_loss(
    log_probability: Expr, target: Expr, weight: Expr | None, reduction: int, ignore_index: int
) -> Expr:
    share = _share(log_probability, target, weight, ignore_index)
    counted = target.compare("ne", ignore_index)
    return _weighted(counted.where(-log_probability * share, 0.0), share, reduction)


def _weighted(loss: Expr, share: Expr, reduction: int) -> Expr:
    if reduction == 0:
        return loss
    total = loss.reduce("sum", ())
    return total / share.reduce("sum", ()) if reduction == 1 else total
