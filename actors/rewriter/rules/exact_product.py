"""Products that stand for the mean of many: done in double, since the reference's errors average.

A mean of T products has about 1/√T of the rounding error of one. A rewrite that multiplies once
has to be as exact, or it fails the test against float64 although nothing is wrong with it.
"""

from __future__ import annotations

import torch
from torch import fx

from kopt.actors.rewriter.graph import Builder, aten, tensor


def exact_linear(
    make: Builder, x: fx.Node, weight: fx.Node, bias: fx.Node | None = None
) -> fx.Node:
    """Add x·Wᵀ + b, accumulated in float64 where x is float32; the result has x's dtype.

    Half precision stays as it is: libraries accumulate it in float32, and the rounding of the
    result hides the rest.
    """
    dtype = tensor(x).dtype
    if dtype is not torch.float32:
        return make(aten.linear.default, x, weight, bias)
    x, weight = (make(aten.to.dtype, value, torch.float64) for value in (x, weight))
    if bias is not None:
        bias = make(aten.to.dtype, bias, torch.float64)
    return make(aten.to.dtype, make(aten.linear.default, x, weight, bias), dtype)
