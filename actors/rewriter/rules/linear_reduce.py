"""A linear layer that is summed, averaged or pooled: the reduction goes through the product."""

from __future__ import annotations

from typing import Any

from torch import fx

from kopt.actors.rewriter.graph import Builder, argument, aten, is_call, shape
from kopt.actors.rewriter.rules.reduce_terms import SUMS, reduced_operand
from kopt.actors.rewriter.rules.rule import rule


def linear_parts(node: fx.Node) -> tuple[fx.Node, fx.Node, fx.Node | None]:
    """Return (input, weight, bias) of a linear call."""
    x, weight = node.args[:2]
    bias = argument(node, "bias")
    assert isinstance(x, fx.Node)
    assert isinstance(weight, fx.Node)
    assert bias is None or isinstance(bias, fx.Node)
    return x, weight, bias


@rule(*SUMS)
def linear_reduce(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ_o (x·Wᵀ + b)_o = x·(Σ_o W_o) + Σ_o b_o: the product becomes a matrix times a vector.

    Source: KernelBench level 2, problems 14, 18 and 51; proved as R01 and R02.
    """
    product, dims, keepdim = node.args
    if not is_call(product, aten.linear.default):
        return None
    assert isinstance(product, fx.Node)
    last = len(shape(product)) - 1
    if last not in dims:  # type: ignore[operator]
        return None
    target: Any = node.target
    x, weight, bias = linear_parts(product)
    row = make(target, weight, [0], True, name="folded_weight")
    if bias is not None:
        bias = make(target, bias, [0], True, name="folded_bias")
    result = make(aten.linear.default, x, row, bias)
    others = [d for d in dims if d != last]  # type: ignore[union-attr]
    if others:
        result = make(target, result, others, True)
    return result if keepdim else make(aten.reshape.default, result, list(shape(node)))


@rule(*SUMS)
def linear_reduce_rows(make: Builder, node: fx.Node) -> fx.Node | None:
    """mean_t (x_t·Wᵀ + b) = (mean_t x_t)·Wᵀ + b: reduce the input's rows, then multiply once."""
    product, dims, keepdim = node.args
    if not is_call(product, aten.linear.default):
        return None
    assert isinstance(product, fx.Node)
    sizes = shape(product)
    last = len(sizes) - 1
    rows = [d for d in dims if d != last]  # type: ignore[union-attr]
    if not rows:
        return None
    target: Any = node.target
    x, weight, bias = linear_parts(product)
    few = make(target, x, rows, True)
    if bias is not None:
        reduced = reduced_operand(make, target, bias, dims=rows, sizes=sizes)
        assert isinstance(reduced, fx.Node)
        bias = reduced
    result = make(aten.linear.default, few, weight, bias)
    if last in dims:  # type: ignore[operator]
        result = make(target, result, [last], True)
    return result if keepdim else make(aten.reshape.default, result, list(shape(node)))


@rule(aten.avg_pool1d.default)
def linear_avg_pool(make: Builder, node: fx.Node) -> fx.Node | None:
    """Averaging neighbouring outputs of a linear layer averages neighbouring rows of W and b.

    Pooling is a linear map of the features, whatever its window, stride and padding.
    Source: KernelBench level 2, problem 98; proved as R04.
    """
    pooled = node.args[0]
    product = _through_reshape(pooled)
    if not is_call(product, aten.linear.default):
        return None
    assert isinstance(product, fx.Node)
    assert isinstance(pooled, fx.Node)
    features = shape(product)[-1]
    if shape(pooled)[-1] != features:
        return None
    x, weight, bias = linear_parts(product)
    rows = _pooled_rows(make, node, weight, features)
    if bias is not None:
        line = make(aten.reshape.default, bias, [1, 1, features])
        bias = make(aten.avg_pool1d.default, line, *node.args[1:], **node.kwargs)
        bias = make(aten.reshape.default, bias, [shape(node)[-1]])
    result = make(aten.linear.default, x, rows, bias)
    return make(aten.reshape.default, result, list(shape(node)))


def _pooled_rows(make: Builder, node: fx.Node, weight: fx.Node, features: int) -> fx.Node:
    window = int(argument(node, "kernel_size")[0])
    stride = int((argument(node, "stride") or [window])[0])
    inputs = shape(weight)[1]
    plain = stride == window and features % window == 0 and not any(argument(node, "padding"))
    if plain:
        grouped = make(aten.reshape.default, weight, [features // window, window, inputs])
        return make(aten.mean.dim, grouped, [1], False, name="pooled_weight")
    columns = make(aten.permute.default, weight, [1, 0])
    columns = make(aten.reshape.default, columns, [1, inputs, features])
    columns = make(aten.avg_pool1d.default, columns, *node.args[1:], **node.kwargs)
    columns = make(aten.reshape.default, columns, [inputs, shape(node)[-1]])
    return make(aten.permute.default, columns, [1, 0])


@rule(*SUMS)
def linear_group_reduce(make: Builder, node: fx.Node) -> fx.Node | None:
    """Summing groups of neighbouring outputs of a linear layer sums groups of rows of W and b."""
    grouped, dims, keepdim = node.args
    if not is_call(grouped, aten.reshape.default):
        return None
    assert isinstance(grouped, fx.Node)
    product = grouped.args[0]
    if not is_call(product, aten.linear.default):
        return None
    assert isinstance(product, fx.Node)
    sizes, features = shape(grouped), shape(product)[-1]
    split = _feature_dims(sizes, features)
    inner = [d for d in dims if d >= split]  # type: ignore[union-attr]
    if not inner or len(sizes) - split < 2:
        return None
    target: Any = node.target
    x, weight, bias = linear_parts(product)
    places = [d - split for d in inner]
    shaped = make(aten.reshape.default, weight, [*sizes[split:], shape(weight)[1]])
    rows = make(target, shaped, places, False, name="folded_weight")
    count = shape(rows)[:-1]
    total = 1
    for size in count:
        total *= size
    rows = make(aten.reshape.default, rows, [total, shape(weight)[1]])
    if bias is not None:
        bias = make(aten.reshape.default, bias, list(sizes[split:]))
        bias = make(target, bias, places, False, name="folded_bias")
        bias = make(aten.reshape.default, bias, [total])
    result = make(aten.linear.default, x, rows, bias)
    kept = [1 if d in inner else size for d, size in enumerate(sizes)]
    result = make(aten.reshape.default, result, kept)
    outer = [d for d in dims if d < split]  # type: ignore[union-attr]
    if outer:
        result = make(target, result, outer, True)
    return result if keepdim else make(aten.reshape.default, result, list(shape(node)))


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


def _through_reshape(node: object) -> object:
    return node.args[0] if is_call(node, aten.reshape.default) else node  # type: ignore[union-attr]
