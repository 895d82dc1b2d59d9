"""Chains of scales and terms: one instead of two, none where it is 1 or 0."""

from __future__ import annotations

import math
from typing import Any

from torch import fx

from kopt.actors.rewriter.graph import Builder, aten, is_call, shape, tensor
from kopt.actors.rewriter.rules.operands import Scaled, is_number, scaled
from kopt.actors.rewriter.rules.rule import rule


@rule(aten.mul.Tensor, aten.div.Tensor, aten.add.Tensor, aten.sub.Tensor, always=True)
def neutral_number(make: Builder, node: fx.Node) -> fx.Node | None:
    """y·1 = y/1 = y + 0 = y - 0 = y."""
    y, number = node.args[:2]
    if not is_number(number) or node.kwargs or not isinstance(y, fx.Node):
        return None
    neutral = 1 if node.target in (aten.mul.Tensor, aten.div.Tensor) else 0
    same = tensor(y).dtype == tensor(node).dtype
    if number != neutral or not same:
        return None
    return make(aten.reshape.default, y, list(shape(y)))


@rule(aten.mul.Tensor, aten.div.Tensor, always=True)
def number_chain(make: Builder, node: fx.Node) -> fx.Node | None:
    """(y·a)·b = y·(a·b), for numbers; likewise for quotients."""
    for outer in scaled(node):
        if not is_number(outer.factor) or len(outer.inner.users) != 1:
            continue
        for inner in scaled(outer.inner):
            if not is_number(inner.factor) or 0 in (inner.factor, outer.factor):
                continue
            if inner.divide and outer.divide:
                number = inner.factor * outer.factor
                made = make(aten.div.Tensor, inner.inner, number)
            else:
                first = 1 / inner.factor if inner.divide else inner.factor
                number = first / outer.factor if outer.divide else first * outer.factor
                made = make(aten.mul.Tensor, inner.inner, number)
            # The product of the numbers must not leave the range that each of them is in.
            return made if 1e-30 < abs(number) < 1e30 and math.isfinite(number) else None
    return None


@rule(aten.add.Tensor, aten.sub.Tensor, always=True)
def self_add(make: Builder, node: fx.Node) -> fx.Node | None:
    """Y + y = 2·y and y·a + y = (1 + a)·y, for numbers.

    Source: KernelBench level 2, problems 22 and 40; proved as R05.
    """
    left, right = node.args[:2]
    if node.kwargs or not isinstance(left, fx.Node) or not isinstance(right, fx.Node):
        return None
    sign = 1 if node.target is aten.add.Tensor else -1
    if left is right:
        # y - y is not 0 for what is not finite.
        return make(aten.mul.Tensor, left, 2.0) if sign > 0 else None
    for way in scaled(left):
        if way.inner is right and is_number(way.factor) and way.factor:
            return _times(make, right, _as_factor(way) + sign)
    for way in scaled(right):
        if way.inner is left and is_number(way.factor) and way.factor:
            return _times(make, left, 1 + sign * _as_factor(way))
    return None


def _as_factor(way: Scaled) -> float:
    assert is_number(way.factor)
    return 1 / way.factor if way.divide else way.factor


def _times(make: Builder, y: fx.Node, number: float) -> fx.Node | None:
    # What cancels loses the digits that the reference keeps.
    return make(aten.mul.Tensor, y, number) if abs(number) > 0.1 else None


@rule(aten.linear.default)
def factor_out_of_linear(make: Builder, node: fx.Node) -> fx.Node | None:
    """(s·x)·Wᵀ = s·(x·Wᵀ) for a number: scale the smaller of input and result."""
    x, weight, *rest = node.args
    if (rest and rest[0] is not None) or node.kwargs:
        return None
    for way in scaled(x):
        if is_number(way.factor):
            return make(way.target, make(aten.linear.default, way.inner, weight), way.factor)
    for way in scaled(weight):
        if is_number(way.factor):
            return make(way.target, make(aten.linear.default, x, way.inner), way.factor)
    return None


@rule(aten.matmul.default, aten.bmm.default)
def factor_out_of_matmul(make: Builder, node: fx.Node) -> fx.Node | None:
    """(s·A)·B = s·(A·B) for a number: scale the smallest of the three."""
    target: Any = node.target
    for place in (0, 1):
        for way in scaled(node.args[place]):
            if is_number(way.factor):
                operands = list(node.args)
                operands[place] = way.inner
                return make(way.target, make(target, *operands), way.factor)
    return None


@rule(aten.neg.default, always=True)
def double_negation(make: Builder, node: fx.Node) -> fx.Node | None:
    """-(-y) = y."""
    inner = node.args[0]
    if not is_call(inner, aten.neg.default):
        return None
    assert isinstance(inner, fx.Node)
    assert isinstance(inner.args[0], fx.Node)
    return make(aten.reshape.default, inner.args[0], list(shape(node)))
