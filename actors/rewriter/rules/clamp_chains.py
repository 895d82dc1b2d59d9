"""Clamps of clamps, and clamps of what is within their bounds anyway."""

from __future__ import annotations

import math

from torch import fx

from kopt.actors.rewriter.graph import Builder, argument, aten, is_call, shape, tensor
from kopt.actors.rewriter.rules.operands import is_number
from kopt.actors.rewriter.rules.ranges import Interval, clamp_bounds, interval
from kopt.actors.rewriter.rules.rule import rule

CLAMPS = (
    aten.relu.default,
    aten.relu6.default,
    aten.hardtanh.default,
    aten.clamp.default,
    aten.clamp_min.default,
    aten.clamp_max.default,
)


@rule(*CLAMPS, aten.abs.default, always=True)
def idle_clamp(make: Builder, node: fx.Node) -> fx.Node | None:
    """A clamp whose bounds the value cannot leave changes nothing; nor |y| for y ≥ 0.

    Source: KernelBench level 2, problems 69 and 95; proved as R20 and R21.
    """
    y = node.args[0]
    assert isinstance(y, fx.Node)
    is_abs = node.target is aten.abs.default
    bounds = Interval(0.0, math.inf) if is_abs else clamp_bounds(node)
    if bounds is None or not interval(y).within(bounds):
        return None
    if tensor(y).dtype != tensor(node).dtype:
        return None
    return make(aten.reshape.default, y, list(shape(y)))


@rule(*CLAMPS, always=True)
def clamp_of_clamp(make: Builder, node: fx.Node) -> fx.Node | None:
    """clamp(clamp(y, a, b), c, d) is one clamp.

    Source: KernelBench level 2, problem 2; proved as R17.
    """
    inner = node.args[0]
    outer_bounds, inner_bounds = clamp_bounds(node), clamp_bounds(inner)
    if outer_bounds is None or inner_bounds is None:
        return None
    assert isinstance(inner, fx.Node)
    y = inner.args[0]
    assert isinstance(y, fx.Node)
    if len(inner.users) != 1 or tensor(y).dtype != tensor(node).dtype:
        return None
    low = min(max(inner_bounds.low, outer_bounds.low), outer_bounds.high)
    high = max(min(inner_bounds.high, outer_bounds.high), outer_bounds.low)
    return make(
        aten.clamp.default,
        y,
        None if low == -math.inf else low,
        None if high == math.inf else high,
    )


@rule(aten.leaky_relu.default, always=True)
def leaky_of_positive(make: Builder, node: fx.Node) -> fx.Node | None:
    """leaky_relu(y) = y for y ≥ 0; leaky_s(leaky_t(y)) = leaky_st(y) for slopes above 0.

    Source: KernelBench level 2, problems 7 and 64; proved as R18 and R19.
    """
    y = node.args[0]
    assert isinstance(y, fx.Node)
    slope = argument(node, "negative_slope")
    if interval(y).low >= 0:
        return make(aten.reshape.default, y, list(shape(y)))
    if not is_call(y, aten.leaky_relu.default) or len(y.users) != 1:
        return None
    inner = argument(y, "negative_slope")
    if not (is_number(slope) and is_number(inner) and slope > 0 and inner > 0):
        return None
    return make(aten.leaky_relu.default, y.args[0], slope * inner)
