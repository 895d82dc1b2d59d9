"""Normalisations as formulas: statistics in two steps (mean, then squares about it)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.ir import Unsupported
from kopt.actors.rewriter.codegen.lower.table import Argument, Context, lowers


def _normalised(x: Expr, dims: Sequence[int], eps: float) -> tuple[Expr, Expr, Expr]:
    """Return (x - mean) / sqrt(var + eps), the mean and the factor, statistics with keepdim."""
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    factor = ((centred * centred).mean(dims, keepdim=True) + float(eps)).unary("rsqrt")
    return centred * factor, mean, factor


def _by_channel(vector: Expr, rank: int) -> Expr:
    return vector.reshape((1, vector.shape[0]) + (1,) * (rank - 2))


def _affine(y: Expr, weight: Expr | None, bias: Expr | None) -> Expr:
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def _affine_by_channel(y: Expr, weight: Expr | None, bias: Expr | None) -> Expr:
    rank = len(y.shape)
    return _affine(
        y,
        None if weight is None else _by_channel(weight, rank),
        None if bias is None else _by_channel(bias, rank),
    )


@lowers("aten.layer_norm.default")
def _(
    context: Context,
    x: Expr,
    normalized_shape: Sequence[int],
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,  # noqa: FBT001, FBT002 -- ATen's own signature
) -> Expr:
    dims = range(-len(normalized_shape), 0)
    return _affine(_normalised(x, dims, eps)[0], weight, bias)


@lowers("aten.native_layer_norm.default")
def _(
    context: Context,
    x: Expr,
    normalized_shape: Sequence[int],
    weight: Expr | None,
    bias: Expr | None,
    eps: float,
) -> tuple[Expr, Expr, Expr]:
    y, mean, factor = _normalised(x, range(-len(normalized_shape), 0), eps)
    return _affine(y, weight, bias), mean, factor


@lowers("aten.rms_norm.default")
def _(
    context: Context,
    x: Expr,
    normalized_shape: Sequence[int],
    weight: Expr | None = None,
    eps: float | None = None,
) -> Expr:
    dims = range(-len(normalized_shape), 0)
    epsilon = torch.finfo(x.dtype).eps if eps is None else float(eps)
    factor = ((x * x).mean(dims, keepdim=True) + epsilon).unary("rsqrt")
    return _affine(x * factor, weight, None)


@lowers("aten.group_norm.default")
def _(
    context: Context,
    x: Expr,
    num_groups: int,
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,  # noqa: FBT001, FBT002
) -> Expr:
    return _group_norm(x, num_groups, weight, bias, eps)


def _group_norm(
    x: Expr, num_groups: int, weight: Expr | None, bias: Expr | None, eps: float
) -> Expr:
    grouped = x.reshape((x.shape[0], num_groups, prod(x.shape[1:]) // num_groups))
    y = _normalised(grouped, (-1,), eps)[0].reshape(x.shape)
    return _affine_by_channel(y, weight, bias)


@lowers("aten.batch_norm.default")
def _(
    context: Context,
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    training: bool,  # noqa: FBT001
    momentum: float,
    eps: float,
    cudnn_enabled: bool,  # noqa: FBT001
) -> Expr:
    return _batch_norm(x, weight, bias, running_mean, running_var, training, eps)


@lowers("aten._native_batch_norm_legit_no_training.default")
def _(
    context: Context,
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr,
    running_var: Expr,
    momentum: float,
    eps: float,
) -> tuple[Expr | None, ...]:
    return _batch_norm(x, weight, bias, running_mean, running_var, False, eps), None, None  # noqa: FBT003


def _batch_norm(
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    training: bool,  # noqa: FBT001
    eps: float,
) -> Expr:
    rank = len(x.shape)
    if training:
        if running_mean is not None:
            raise Unsupported("a batch norm that updates its buffers")
        y = _normalised(x, [dim for dim in range(rank) if dim != 1], eps)[0]
    else:
        if running_mean is None or running_var is None:
            raise Unsupported("an evaluating batch norm without statistics")
        factor = (running_var + float(eps)).unary("rsqrt")
        y = (x - _by_channel(running_mean, rank)) * _by_channel(factor, rank)
    return _affine_by_channel(y, weight, bias)


@lowers("aten.instance_norm.default")
def _(
    context: Context,
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    use_input_stats: bool,  # noqa: FBT001
    *rest: Argument,
) -> Expr:
    if not use_input_stats or running_mean is not None:
        raise Unsupported("an instance norm with buffers")
    return _group_norm(x, x.shape[1], weight, bias, float(rest[1]))
