"""Sums over one index of two tensors, written as products: `bijl,lk->bijk` is a linear layer."""

from __future__ import annotations

from torch import fx

from kopt.actors.rewriter.forms import form
from kopt.actors.rewriter.graph import Builder, aten, shape


@form(aten.einsum.default)
def _einsum(make: Builder, node: fx.Node) -> fx.Node | None:
    """x[…, l] · w[l, k] or w[k, l], summed over l alone, is x·Wᵀ."""
    equation, listed = node.args[:2]
    if not isinstance(equation, str) or not isinstance(listed, list | tuple) or len(listed) != 2:
        return None
    x, weight = listed
    given, _, result = equation.replace(" ", "").partition("->")
    left, _, right = given.partition(",")
    if not isinstance(x, fx.Node) or not isinstance(weight, fx.Node) or "." in equation:
        return None
    summed = left[-1:]
    if len(right) != 2 or len(left) < 2 or len(set(left)) != len(left) or summed not in right:
        return None
    kept = right.replace(summed, "")
    if result != left[:-1] + kept or kept in left or len(kept) != 1:
        return None
    if len(shape(x)) != len(left) or len(shape(weight)) != 2:
        return None
    if right[0] == summed:
        weight = make(aten.permute.default, weight, [1, 0])
    return make(aten.linear.default, x, weight)
