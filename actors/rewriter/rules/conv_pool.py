"""Average pools after convolutions: one strided convolution with a wider kernel does both."""

from __future__ import annotations

from math import ceil, floor

from torch import fx

from kopt.actors.rewriter.graph import Builder, aten, is_call, shape
from kopt.actors.rewriter.rules.convolution import (
    POOL,
    Convolution,
    average_pool,
    box_filtered,
    convolution,
    convolve,
)
from kopt.actors.rewriter.rules.rule import rule


@rule(*POOL)
def conv_avg_pool(make: Builder, node: fx.Node) -> fx.Node | None:
    """AvgPool_p(conv_w(x)) = a convolution with w averaged over p shifts, strides multiplied.

    Source: KernelBench level 2, problem 65; proved as R08.
    """
    pool = average_pool(node)
    conv = None if pool is None else convolution(pool.x)
    if pool is None or conv is None or conv.transposed or len(pool.window) != conv.rank:
        return None
    if any(d != 1 for d in conv.dilation):
        return None
    weight = box_filtered(make, conv.weight, window=pool.window, step=conv.stride)
    return convolve(
        make,
        conv.x,
        weight,
        conv.bias,
        stride=tuple(a * b for a, b in zip(conv.stride, pool.stride, strict=True)),
        padding=conv.padding,
        dilation=conv.dilation,
        groups=conv.groups,
    )


@rule(*POOL)
def conv_transpose_avg_pool(make: Builder, node: fx.Node) -> fx.Node | None:
    """AvgPool(convT(x)) keeps one phase of the averaged kernel: a plain convolution of x.

    With stride s, padding c and windows of p at steps r·s: out[o] = Σ_m x[o·r - m] w̄[c + m·s],
    where w̄[u] is the mean of w[u … u+p-1].
    Source: KernelBench level 2, problem 50; proved as R09.
    """
    pool = average_pool(node)
    conv = None if pool is None else convolution(pool.x)
    if pool is None or conv is None or not conv.transposed or len(pool.window) != conv.rank:
        return None
    if any(d != 1 for d in conv.dilation):
        return None
    if any(p % s for p, s in zip(pool.stride, conv.stride, strict=True)):
        return None
    wide = box_filtered(make, conv.weight, window=pool.window, step=(1,) * conv.rank)
    pads: list[tuple[int, int]] = []
    for place in range(conv.rank):
        s, c, p = conv.stride[place], conv.padding[place], pool.window[place]
        most = floor((conv.kernel[place] - 1 - c) / s)
        least = ceil((-(p - 1) - c) / s)
        first = c + least * s + p - 1
        wide = make(aten.slice.Tensor, wide, 2 + place, first, c + most * s + p, s)
        ratio = pool.stride[place] // s
        outputs = shape(node)[2 + place]
        pads.append((most, (outputs - 1) * ratio - least - (conv.sizes[place] - 1)))
    weight = make(aten.flip.default, wide, [2 + place for place in range(conv.rank)])
    weight = _plain_weight(make, conv, weight)
    x, padding = conv.x, tuple(before for before, _ in pads)
    if any(before != after or before < 0 for before, after in pads):
        amounts = [amount for pair in reversed(pads) for amount in pair]
        x, padding = make(aten.pad.default, x, amounts), (0,) * conv.rank
    return convolve(
        make,
        x,
        weight,
        conv.bias,
        stride=tuple(p // s for p, s in zip(pool.stride, conv.stride, strict=True)),
        padding=padding,
        dilation=(1,) * conv.rank,
        groups=conv.groups,
    )


def _plain_weight(make: Builder, conv: Convolution, weight: fx.Node) -> fx.Node:
    """Return (in, out / groups, *k) as (out, in / groups, *k)."""
    kernel, spatial = shape(weight)[2:], range(2, 2 + conv.rank)
    if conv.groups == 1:
        return make(aten.permute.default, weight, [1, 0, *spatial], name="pooled_weight")
    inputs, outputs = shape(weight)[:2]
    split = [conv.groups, inputs // conv.groups, outputs, *kernel]
    weight = make(aten.reshape.default, weight, split)
    weight = make(aten.permute.default, weight, [0, 2, 1, *(d + 1 for d in spatial)])
    whole = [conv.groups * outputs, inputs // conv.groups, *kernel]
    return make(aten.reshape.default, weight, whole, name="pooled_weight")


@rule(*POOL, aten.adaptive_avg_pool1d.default, aten.adaptive_avg_pool2d.default)
def pool_before_pointwise(make: Builder, node: fx.Node) -> fx.Node | None:
    """AvgPool(W₁ₓ₁ * x + b) = W₁ₓ₁ * AvgPool(x) + b: pool first, on fewer elements.

    Source: KernelBench level 3, DenseNet transitions.
    """
    inner = node.args[0]
    conv = convolution(inner)
    if conv is None or conv.transposed or any(k != 1 for k in conv.kernel):
        return None
    if any(s != 1 for s in conv.stride) or any(conv.padding):
        return None
    if is_call(node, *POOL) and average_pool(node) is None:
        return None
    pooled = make.like(node, conv.x, *node.args[1:])
    return convolve(
        make,
        pooled,
        conv.weight,
        conv.bias,
        stride=conv.stride,
        padding=conv.padding,
        dilation=conv.dilation,
        groups=conv.groups,
    )
