"""Scales and terms after a product or a convolution go into its weight and bias.

The weight is smaller than the result wherever the rule pays; it is folded at every call.
"""

from __future__ import annotations

from typing import Any

from torch import fx

from kopt.actors.rewriter.graph import Aten, Builder, argument, aten, is_call, shape
from kopt.actors.rewriter.rules.convolution import CONV, TRANSPOSED
from kopt.actors.rewriter.rules.operands import (
    Operand,
    aligned,
    is_constant_along,
    is_number,
    scaled,
    shifted,
)
from kopt.actors.rewriter.rules.rule import rule

LINEAR = (aten.linear.default, *CONV, *TRANSPOSED)


@rule(aten.mul.Tensor, aten.div.Tensor)
def fold_scale(make: Builder, node: fx.Node) -> fx.Node | None:
    """s·(W·x + b) = (s·W)·x + s·b, for a number or one factor for each output channel.

    Source: KernelBench level 2, problems 9, 12, 22, 53, 59, 63 and 86.
    """
    for way in scaled(node):
        product = way.inner
        if not is_call(product, *LINEAR) or len(product.users) != 1:
            continue
        if not _by_channel(way.factor, product):
            continue
        weight, bias = product.args[1], argument(product, "bias")
        assert isinstance(weight, fx.Node)
        new_weight = _scale_weight(make, way.target, weight, way.factor, product)
        if new_weight is None:
            continue
        if bias is not None:
            bias = make(way.target, bias, _as_vector(make, way.factor, product), name="scaled_bias")
        return _with(make, product, weight=new_weight, bias=bias)
    return None


@rule(aten.add.Tensor, aten.sub.Tensor)
def fold_term(make: Builder, node: fx.Node) -> fx.Node | None:
    """(W·x + b) + c = W·x + (b + c), for one term for each output channel.

    Source: KernelBench level 2, problems with a second bias.
    """
    for way in shifted(node):
        product = way.inner
        if not is_call(product, *LINEAR) or len(product.users) != 1 or way.inner_sign < 0:
            continue
        if is_number(way.term) or not _by_channel(way.term, product):
            continue
        bias = argument(product, "bias")
        term = _as_vector(make, way.term, product)
        channels = _channels(product)
        if bias is None:
            if way.sign < 0:
                term = make(aten.neg.default, term)
            assert isinstance(term, fx.Node)
            new = make(aten.expand.default, term, [channels])
        else:
            target = aten.add.Tensor if way.sign > 0 else aten.sub.Tensor
            new = make(target, bias, term, name="whole_bias")
        return _with(make, product, weight=product.args[1], bias=new)
    return None


@rule(aten.batch_norm.default)
def fold_batch_norm(make: Builder, node: fx.Node) -> fx.Node | None:
    """A batch norm with fixed statistics is a scale and a term for each channel, so it folds.

    Only in eval mode: in training the statistics are those of the batch.
    Source: proved as R26.
    """
    product = node.args[0]
    if argument(node, "training") or not is_call(product, *CONV, aten.linear.default):
        return None
    assert isinstance(product, fx.Node)
    if len(product.users) != 1 or (
        product.target is aten.linear.default and len(shape(product)) != 2
    ):
        return None
    mean, var = argument(node, "running_mean"), argument(node, "running_var")
    gamma, beta = argument(node, "weight"), argument(node, "bias")
    if mean is None or var is None:
        return None
    scale = make(aten.rsqrt.default, make(aten.add.Tensor, var, argument(node, "eps")))
    if gamma is not None:
        scale = make(aten.mul.Tensor, scale, gamma, name="scale")
    weight, bias = product.args[1], argument(product, "bias")
    assert isinstance(weight, fx.Node)
    column = make(aten.reshape.default, scale, [-1, *[1] * (len(shape(weight)) - 1)])
    new_weight = make(aten.mul.Tensor, weight, column, name="scaled_weight")
    centred = make(aten.neg.default, mean) if bias is None else make(aten.sub.Tensor, bias, mean)
    new_bias = make(aten.mul.Tensor, centred, scale)
    if beta is not None:
        new_bias = make(aten.add.Tensor, new_bias, beta)
    return _with(make, product, weight=new_weight, bias=new_bias)


def _channels(product: fx.Node) -> int:
    sizes = shape(product)
    return sizes[-1] if product.target is aten.linear.default else sizes[-_spatial(product) - 1]


def _spatial(product: fx.Node) -> int:
    weight = product.args[1]
    assert isinstance(weight, fx.Node)
    return len(shape(weight)) - 2


def _by_channel(value: Operand, product: fx.Node) -> bool:
    """Whether an operand changes along the output channels at most."""
    rank = len(shape(product))
    channel = rank - 1 if product.target is aten.linear.default else rank - 1 - _spatial(product)
    others = [d for d in range(rank) if d != channel]
    if is_number(value):
        return True
    sizes = aligned(value, rank)
    return len(sizes) == rank and is_constant_along(value, others, rank)


def _as_vector(make: Builder, value: Operand, product: fx.Node) -> Operand:
    """Return an operand as (channels,), as () or as the number it is."""
    if is_number(value):
        return value
    assert isinstance(value, fx.Node)
    if not shape(value):
        return value
    count = 1
    for size in shape(value):
        count *= size
    del product
    return make(aten.reshape.default, value, [count])


def _scale_weight(
    make: Builder,
    target: Aten,
    weight: fx.Node,
    factor: Operand,
    product: fx.Node,
) -> fx.Node | None:
    vector = _as_vector(make, factor, product)
    if not is_number(vector) and isinstance(vector, fx.Node) and shape(vector):
        place = 1 if product.target in TRANSPOSED else 0
        if place and argument(product, "groups") != 1 and shape(vector)[0] != 1:
            return None
        sizes = [1] * len(shape(weight))
        sizes[place] = shape(vector)[0]
        vector = make(aten.reshape.default, vector, sizes)
    return make(target, weight, vector, name="scaled_weight")


def _with(make: Builder, product: fx.Node, *, weight: Aten, bias: Aten) -> fx.Node:
    x, rest = product.args[0], product.args[3:]
    target: Any = product.target
    named: dict[str, Any] = {k: v for k, v in product.kwargs.items() if k != "bias"}
    return make(target, x, weight, bias, *rest, **named)
