"""Sums and means over space after a convolution: sums of windows of the input are enough.

Along a reduced dimension each tap of the kernel meets one range of the input, whichever output
it serves. So Σ_o conv(x)[o] = Σ_taps w[tap] · (Σ of x over the tap's range), and the dimension
shrinks from the input's size to the kernel's. The ranges differ only at the borders.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, prod

from torch import fx

from kopt.actors.rewriter.graph import Builder, aten, shape
from kopt.actors.rewriter.rules.convolution import (
    TRANSPOSED,
    Convolution,
    convolution,
    convolve,
)
from kopt.actors.rewriter.rules.exact_product import exact_linear
from kopt.actors.rewriter.rules.operands import reduction
from kopt.actors.rewriter.rules.reduce_terms import SUMS, finished
from kopt.actors.rewriter.rules.rule import rule

Range = tuple[int, int, int]
"""Start, stop and step of the input's indices that a tap meets."""


@rule(*SUMS)
def conv_reduce(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ over space of conv(x) = W · (Σ of x over each tap's range) + count·b.

    Source: KernelBench level 2, problems 13, 42 and 44; proved as R06, R06b and R07.
    """
    total = reduction(node)
    conv = convolution(total.x)
    reduced = [d - 2 for d in total.dims if d >= 2]
    if conv is None or not reduced:
        return None
    ranges = {place: _ranges(conv, place) for place in reduced}
    if None in ranges.values():
        return None
    sums = conv.x
    # The last dimension first: it is the one that lies together in memory.
    for place in reversed(reduced):
        spans = ranges[place]
        assert spans is not None
        sums = _tap_sums(make, sums, 2 + place, spans)
    count, mean = prod(conv.out_sizes[place] for place in reduced), total.target is aten.mean.dim
    if mean and prod(shape(sums)) < prod(shape(conv.weight)):
        sums = make(aten.mul.Tensor, sums, 1.0 / count)
    elif mean:
        weight = make(aten.mul.Tensor, conv.weight, 1.0 / count, name="scaled_weight")
        conv = replace(conv, weight=weight)
    kept = [place for place in range(conv.rank) if place not in reduced]
    result = _contracted(make, conv, sums, reduced=reduced, kept=kept)
    result = _with_bias(make, conv, result, times=1 if mean else count)
    full = [1 if place in reduced else conv.out_sizes[place] for place in range(conv.rank)]
    result = make(aten.reshape.default, result, [shape(conv.x)[0], conv.channels, *full])
    return finished(make, node, result, rest=[d for d in total.dims if d < 2])


def _ranges(conv: Convolution, place: int) -> list[Range] | None:
    """Return the range of input indices that each tap meets; None where one meets none."""
    size, outputs = conv.sizes[place], conv.out_sizes[place]
    s, p, d = conv.stride[place], conv.padding[place], conv.dilation[place]
    found: list[Range] = []
    for tap in range(conv.kernel[place]):
        if conv.transposed:  # output = input·s - p + tap·d
            first = max(0, ceil((p - tap * d) / s))
            last = min(size - 1, floor((outputs - 1 + p - tap * d) / s))
            span = (first, last + 1, 1)
        else:  # input = output·s - p + tap·d
            lowest = max(0, ceil((p - tap * d) / s))
            highest = min(outputs - 1, floor((size - 1 + p - tap * d) / s))
            first, last = lowest * s - p + tap * d, highest * s - p + tap * d
            span = (first, last + 1, s)
        if first > last:
            return None
        found.append(span)
    return found


def _tap_sums(make: Builder, x: fx.Node, dim: int, ranges: list[Range]) -> fx.Node:
    """Return x with a dimension replaced by one sum for each tap."""
    size = shape(x)[dim]
    whole: fx.Node | None = None
    made: dict[Range, fx.Node] = {}
    for span in ranges:
        if span in made:
            continue
        start, stop, step = span
        if step == 1 and stop - start >= size - (stop - start):
            # Close to all of it: the whole sum less the borders reads x once for all taps.
            if whole is None:
                whole = make.reduce(aten.sum.dim_IntList, x, [dim])
            total = whole
            for begin, end in ((0, start), (stop, size)):
                if begin < end:
                    total = make(aten.sub.Tensor, total, _part(make, x, dim, (begin, end, 1)))
            made[span] = total
        else:
            made[span] = _part(make, x, dim, span)
    if len(ranges) == 1:
        return made[ranges[0]]
    return make(aten.cat.default, [made[span] for span in ranges], dim)


def _part(make: Builder, x: fx.Node, dim: int, span: Range) -> fx.Node:
    start, stop, step = span
    part = make(aten.slice.Tensor, x, dim, start, stop, step)
    if shape(part)[dim] == 1:
        return part
    return make.reduce(aten.sum.dim_IntList, part, [dim])


def _contracted(
    make: Builder, conv: Convolution, sums: fx.Node, *, reduced: list[int], kept: list[int]
) -> fx.Node:
    """Apply the weights: taps of reduced dimensions become further input channels.

    Returns:
        (batch, channels, *out sizes of kept dimensions), without bias.
    """
    batch, inputs = shape(conv.x)[:2]
    taps = prod(conv.kernel[place] for place in reduced)
    order = [2 + place for place in (*reduced, *kept)]
    moved = make(aten.permute.default, sums, [0, 1, *order])
    sizes = [conv.sizes[place] for place in kept]
    x = make(aten.reshape.default, moved, [batch, inputs * taps, *sizes])
    first, second = shape(conv.weight)[:2]
    kernel = [conv.kernel[place] for place in kept]
    if not conv.transposed:
        weight = make(aten.permute.default, conv.weight, [0, 1, *order])
        weight = make(aten.reshape.default, weight, [first, second * taps, *kernel])
    elif kept:
        spatial = [2 + place for place in reduced]
        moved = make(aten.permute.default, conv.weight, [0, *spatial, 1, *(2 + k for k in kept)])
        weight = make(aten.reshape.default, moved, [first * taps, second, *kernel])
    else:
        weight = _matrix_of_transposed(make, conv, order=order, taps=taps)
    if not kept:
        return _product(make, conv, x, weight)
    lists = [[values[place] for place in kept] for values in (conv.stride, conv.padding)]
    dilation = [conv.dilation[place] for place in kept]
    if not conv.transposed:
        return convolve(
            make,
            x,
            weight,
            None,
            stride=tuple(lists[0]),
            padding=tuple(lists[1]),
            dilation=tuple(dilation),
            groups=conv.groups,
        )
    extra = [_output_padding(conv, place) for place in kept]
    target = TRANSPOSED[len(kept) - 1]
    return make(target, x, weight, None, *lists, extra, conv.groups, dilation)


def _matrix_of_transposed(
    make: Builder, conv: Convolution, *, order: list[int], taps: int
) -> fx.Node:
    """Return the weights of a transposed convolution as (out, in / groups · taps)."""
    inputs, outputs = shape(conv.weight)[:2]
    each = inputs // conv.groups
    split = make(aten.reshape.default, conv.weight, [conv.groups, each, outputs, *conv.kernel])
    moved = make(aten.permute.default, split, [0, 2, 1, *(d + 1 for d in order)])
    return make(aten.reshape.default, moved, [conv.groups * outputs, each * taps])


def _product(make: Builder, conv: Convolution, x: fx.Node, weight: fx.Node) -> fx.Node:
    """Multiply (batch, in · taps) by (out, in / groups · taps), group by group."""
    if conv.groups == 1:
        return exact_linear(make, x, weight)
    batch, width = shape(x)
    groups, outputs = conv.groups, conv.channels // conv.groups
    left = make(aten.reshape.default, x, [batch, groups, width // groups])
    left = make(aten.permute.default, left, [1, 0, 2])
    right = make(aten.reshape.default, weight, [groups, outputs, width // groups])
    right = make(aten.permute.default, right, [0, 2, 1])
    made = make(aten.permute.default, make(aten.bmm.default, left, right), [1, 0, 2])
    return make(aten.reshape.default, made, [batch, conv.channels])


def _output_padding(conv: Convolution, place: int) -> int:
    least = (
        (conv.sizes[place] - 1) * conv.stride[place]
        - 2 * conv.padding[place]
        + conv.dilation[place] * (conv.kernel[place] - 1)
        + 1
    )
    return conv.out_sizes[place] - least


def _with_bias(make: Builder, conv: Convolution, result: fx.Node, *, times: int) -> fx.Node:
    if conv.bias is None:
        return result
    bias = conv.bias if times == 1 else make(aten.mul.Tensor, conv.bias, times)
    rank = len(shape(result)) - 2
    column = make(aten.reshape.default, bias, [conv.channels, *[1] * rank])
    return make(aten.add.Tensor, result, column)
