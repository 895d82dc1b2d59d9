"""Average pools go through factors, terms and other averages: pool first, on fewer elements."""

from __future__ import annotations

from math import prod

from torch import fx

from kopt.actors.rewriter.graph import Builder, aten, is_call, shape
from kopt.actors.rewriter.rules.convolution import POOL, average_pool
from kopt.actors.rewriter.rules.operands import is_constant_along, reduction, scaled, shifted
from kopt.actors.rewriter.rules.rule import rule


def _pooled_dims(node: fx.Node) -> range:
    rank = len(shape(node))
    return range(rank - POOL.index(node.target) - 1, rank)


@rule(*POOL)
def factor_out_of_pool(make: Builder, node: fx.Node) -> fx.Node | None:
    """AvgPool(s·y) = s·AvgPool(y) where s does not change within the pooled dimensions.

    Source: KernelBench level 2, problem 50.
    """
    dims = _pooled_dims(node)
    for way in scaled(node.args[0]):
        if is_constant_along(way.factor, dims, len(shape(node))):
            pooled = make.like(node, way.inner, *node.args[1:])
            return make(way.target, pooled, way.factor)
    return None


@rule(*POOL)
def term_out_of_pool(make: Builder, node: fx.Node) -> fx.Node | None:
    """AvgPool(y + c) = AvgPool(y) + c where c does not change within the pooled dimensions.

    Not with padding: a window that hangs over the border holds less of c.
    """
    if average_pool(node) is None:
        return None
    dims = _pooled_dims(node)
    for way in shifted(node.args[0]):
        if way.inner_sign < 0 or not is_constant_along(way.term, dims, len(shape(node))):
            continue
        pooled = make.like(node, way.inner, *node.args[1:])
        return make(aten.add.Tensor if way.sign > 0 else aten.sub.Tensor, pooled, way.term)
    return None


@rule(*POOL)
def pool_of_pool(make: Builder, node: fx.Node) -> fx.Node | None:
    """AvgPool_q(AvgPool_p(y)) = AvgPool_pq(y) where windows tile: each step equals its window.

    Source: KernelBench level 2, problem 72; proved as R29.
    """
    outer = average_pool(node)
    if outer is None or not is_call(outer.x, node.target):
        return None
    inner = average_pool(outer.x)
    if inner is None or inner.window != inner.stride or len(inner.window) != len(outer.window):
        return None
    window = [a * b for a, b in zip(inner.window, outer.window, strict=True)]
    stride = [a * b for a, b in zip(inner.stride, outer.stride, strict=True)]
    return make.like(node, inner.x, window, stride)


@rule(aten.mean.dim, aten.sum.dim_IntList)
def sum_of_pool(make: Builder, node: fx.Node) -> fx.Node | None:
    """The mean of all window means is the mean, where the windows tile the input exactly."""
    total = reduction(node)
    if not is_call(total.x, *POOL):
        return None
    pool = average_pool(total.x)
    spatial = _pooled_dims(total.x)
    if pool is None or not set(spatial) <= set(total.dims):
        return None
    sizes = [shape(pool.x)[d] for d in spatial]
    tiles = zip(sizes, pool.window, pool.stride, strict=True)
    if any(w != s or size % w for size, w, s in tiles):
        return None
    result = make(total.target, pool.x, total.dims, total.keepdim)
    if total.target is aten.mean.dim:
        return result
    return make(aten.div.Tensor, result, float(prod(pool.window)))
