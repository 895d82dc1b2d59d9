"""A linear layer that is summed, averaged or pooled: the reduction goes through the product."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from torch import fx

from kopt.actors.rewriter.graph import Builder, argument, aten, is_call, shape
from kopt.actors.rewriter.rules.exact_product import exact_linear
from kopt.actors.rewriter.rules.operands import reduction
from kopt.actors.rewriter.rules.reduce_terms import SUMS, finished, reduced_operand
from kopt.actors.rewriter.rules.rule import rule


class Linear(NamedTuple):
    """x·Wᵀ + b."""

    x: fx.Node
    weight: fx.Node
    """(out, in)."""
    bias: fx.Node | None
    """(out,)."""


def linear(node: object) -> Linear | None:
    """Read a call as a linear layer; None where it is none, or its weight is no matrix."""
    if not is_call(node, aten.linear.default):
        return None
    assert isinstance(node, fx.Node)
    x, weight = node.args[:2]
    bias = argument(node, "bias")
    assert isinstance(x, fx.Node)
    assert isinstance(weight, fx.Node)
    assert bias is None or isinstance(bias, fx.Node)
    if len(shape(weight)) != 2 or (bias is not None and shape(bias) != shape(weight)[:1]):
        return None
    return Linear(x, weight, bias)


@rule(*SUMS)
def linear_reduce(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ_o (x·Wᵀ + b)_o = x·(Σ_o W_o) + Σ_o b_o: the product becomes a matrix times a vector.

    Source: KernelBench level 2, problems 14, 18 and 51; proved as R01 and R02.
    """
    total = reduction(node)
    product = linear(total.x)
    last = len(shape(total.x)) - 1
    if product is None or last not in total.dims:
        return None
    row = make.reduce(total.target, product.weight, [0], name="folded_weight")
    bias = product.bias
    if bias is not None:
        bias = make.reduce(total.target, bias, [0], name="folded_bias")
    result = make(aten.linear.default, product.x, row, bias)
    return finished(make, node, result, rest=[d for d in total.dims if d != last])


@rule(*SUMS)
def linear_reduce_rows(make: Builder, node: fx.Node) -> fx.Node | None:
    """mean_t (x_t·Wᵀ + b) = (mean_t x_t)·Wᵀ + b: reduce the input's rows, then multiply once."""
    total = reduction(node)
    product = linear(total.x)
    sizes = shape(total.x)
    last = len(sizes) - 1
    rows = [d for d in total.dims if d != last]
    if product is None or not rows:
        return None
    few = make.reduce(total.target, product.x, rows)
    bias = product.bias
    if bias is not None:
        reduced = reduced_operand(make, total.target, bias, dims=rows, sizes=sizes)
        assert isinstance(reduced, fx.Node)
        bias = reduced
    result = exact_linear(make, few, product.weight, bias)
    return finished(make, node, result, rest=[d for d in total.dims if d == last])


@rule(aten.avg_pool1d.default)
def linear_avg_pool(make: Builder, node: fx.Node) -> fx.Node | None:
    """Averaging neighbouring outputs of a linear layer averages neighbouring rows of W and b.

    Pooling is a linear map of the features, whatever its window, stride and padding.
    Source: KernelBench level 2, problem 98; proved as R04.
    """
    pooled = node.args[0]
    assert isinstance(pooled, fx.Node)
    source = pooled.args[0] if is_call(pooled, aten.reshape.default) else pooled
    product = linear(source)
    if product is None:
        return None
    features = shape(product.weight)[0]
    if shape(pooled)[-1] != features:
        return None
    rows = _pooled_rows(make, node, product.weight)
    bias = product.bias
    if bias is not None:
        line = make(aten.reshape.default, bias, [1, 1, features])
        bias = make.like(node, line, *node.args[1:])
        bias = make(aten.reshape.default, bias, [shape(node)[-1]])
    result = make(aten.linear.default, product.x, rows, bias)
    return make(aten.reshape.default, result, list(shape(node)))


def _pooled_rows(make: Builder, node: fx.Node, weight: fx.Node) -> fx.Node:
    window = int(argument(node, "kernel_size")[0])
    stride = int((argument(node, "stride") or [window])[0])
    features, inputs = shape(weight)
    plain = stride == window and features % window == 0 and not any(argument(node, "padding"))
    if plain:
        grouped = make(aten.reshape.default, weight, [features // window, window, inputs])
        return make.reduce(aten.mean.dim, grouped, [1], keepdim=False, name="pooled_weight")
    columns = make(aten.permute.default, weight, [1, 0])
    columns = make(aten.reshape.default, columns, [1, inputs, features])
    columns = make.like(node, columns, *node.args[1:])
    columns = make(aten.reshape.default, columns, [inputs, shape(node)[-1]])
    return make(aten.permute.default, columns, [1, 0])


@rule(*SUMS)
def linear_group_reduce(make: Builder, node: fx.Node) -> fx.Node | None:
    """Summing groups of neighbouring outputs of a linear layer sums groups of rows of W and b."""
    total = reduction(node)
    if not is_call(total.x, aten.reshape.default):
        return None
    product = linear(total.x.args[0])
    if product is None:
        return None
    sizes, (features, inputs) = shape(total.x), shape(product.weight)
    split = _feature_dims(sizes, features)
    inner = [d - split for d in total.dims if d >= split]
    if not inner or len(sizes) - split < 2:
        return None
    grouped = make(aten.reshape.default, product.weight, [*sizes[split:], inputs])
    rows = make.reduce(total.target, grouped, inner, keepdim=False, name="folded_weight")
    left = prod(shape(rows)[:-1])
    rows = make(aten.reshape.default, rows, [left, inputs])
    bias = product.bias
    if bias is not None:
        bias = make(aten.reshape.default, bias, list(sizes[split:]))
        bias = make.reduce(total.target, bias, inner, keepdim=False, name="folded_bias")
        bias = make(aten.reshape.default, bias, [left])
    result = make(aten.linear.default, product.x, rows, bias)
    kept = [1 if d - split in inner else size for d, size in enumerate(sizes)]
    result = make(aten.reshape.default, result, kept)
    return finished(make, node, result, rest=[d for d in total.dims if d < split])


def _feature_dims(sizes: tuple[int, ...], features: int) -> int:
    """Return the first of the trailing dimensions that hold the features; len(sizes) if none."""
    held = 1
    for place in range(len(sizes) - 1, -1, -1):
        held *= sizes[place]
        if held == features:
            return place
        if held > features:
            break
    return len(sizes)
