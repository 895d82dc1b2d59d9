"""A linear layer whose outputs are summed or averaged: the weights can be summed first."""

from __future__ import annotations

from torch import fx

from kopt.actors.rewriter.graph import Builder, aten, is_call, shape
from kopt.actors.rewriter.rules.rule import rule


@rule(aten.sum.dim_IntList, aten.mean.dim)
def linear_reduce(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ_o (x·Wᵀ + b)_o = x·(Σ_o W_o) + Σ_o b_o.

    Source: KernelBench level 2, problems 14, 18 and 51; proved in float64 as R01 and R02.
    """
    product, dims, keepdim = node.args
    if not is_call(product, aten.linear.default):
        return None
    assert isinstance(product, fx.Node)
    rank = len(shape(product))
    if rank - 1 not in dims:  # type: ignore[operator]
        return None
    reduce = node.target
    x, weight, *rest = product.args
    row = make(reduce, weight, [0], True, name="folded_weight")  # type: ignore[arg-type]
    bias = None
    if rest and rest[0] is not None:
        bias = make(reduce, rest[0], [0], True, name="folded_bias")  # type: ignore[arg-type]
    narrow = make(aten.linear.default, x, row, bias)
    others = [d for d in dims if d != rank - 1]  # type: ignore[union-attr]
    if others:
        narrow = make(reduce, narrow, others, True)  # type: ignore[arg-type]
    return narrow if keepdim else make(aten.reshape.default, narrow, list(shape(node)))
