"""Between which numbers a value must lie, whatever the inputs (NaN apart)."""

from __future__ import annotations

from typing import NamedTuple

from torch import fx

from kopt.actors.rewriter.graph import argument, aten, is_call
from kopt.actors.rewriter.rules.operands import is_number

INFINITY = float("inf")


class Interval(NamedTuple):
    """A closed interval."""

    low: float
    high: float

    def within(self, other: Interval) -> bool:
        """Whether it lies inside another."""
        return self.low >= other.low and self.high <= other.high


ANYTHING = Interval(-INFINITY, INFINITY)

_FIXED = {
    aten.relu.default: Interval(0.0, INFINITY),
    aten.relu6.default: Interval(0.0, 6.0),
    aten.sigmoid.default: Interval(0.0, 1.0),
    aten.hardsigmoid.default: Interval(0.0, 1.0),
    aten.tanh.default: Interval(-1.0, 1.0),
    aten.exp.default: Interval(0.0, INFINITY),
    aten.abs.default: Interval(0.0, INFINITY),
    aten.square.default: Interval(0.0, INFINITY),
    aten.sin.default: Interval(-1.0, 1.0),
    aten.cos.default: Interval(-1.0, 1.0),
    aten.erf.default: Interval(-1.0, 1.0),
    aten.softplus.default: Interval(0.0, INFINITY),
}
_SAME = frozenset(
    (
        aten.reshape.default,
        aten.permute.default,
        aten.expand.default,
        aten.slice.Tensor,
        aten.select.int,
        aten.flip.default,
        aten.amax.default,
        aten.amin.default,
        aten.max_pool2d.default,
        aten.contiguous.default,
    )
)
"""Calls that move or pick elements."""


def clamp_bounds(node: object) -> Interval | None:
    """Return the bounds of a call that clamps to numbers, NaN passed on; None for other calls."""
    if is_call(node, aten.relu.default):
        return Interval(0.0, INFINITY)
    if is_call(node, aten.relu6.default):
        return Interval(0.0, 6.0)
    assert isinstance(node, fx.Node) or node is None
    names = ("min", "max")
    if is_call(node, aten.hardtanh.default):
        names = ("min_val", "max_val")
    elif is_call(node, aten.clamp_min.default):
        names = ("min", "")
    elif is_call(node, aten.clamp_max.default):
        names = ("", "max")
    elif not is_call(node, aten.clamp.default):
        return None
    assert isinstance(node, fx.Node)
    low = argument(node, names[0]) if names[0] else None
    high = argument(node, names[1]) if names[1] else None
    if not all(bound is None or is_number(bound) for bound in (low, high)):
        return None
    found = Interval(
        -INFINITY if low is None else float(low), INFINITY if high is None else float(high)
    )
    return found if found.low <= found.high else None


def interval(node: object, *, depth: int = 8) -> Interval:
    """Return an interval that holds every element of a node's value that is no NaN."""
    if not isinstance(node, fx.Node) or node.op != "call_function" or depth == 0:
        return ANYTHING
    bounds = clamp_bounds(node)
    if bounds is not None:
        inner = interval(node.args[0], depth=depth - 1)
        return Interval(
            min(max(inner.low, bounds.low), bounds.high),
            max(min(inner.high, bounds.high), bounds.low),
        )
    if node.target in _FIXED:
        return _FIXED[node.target]
    if node.target in _SAME:
        return interval(node.args[0], depth=depth - 1)
    if is_call(node, aten.softmax.int):
        return Interval(0.0, 1.0)
    if is_call(node, aten.log_softmax.int):
        return Interval(-INFINITY, 0.0)
    return ANYTHING
