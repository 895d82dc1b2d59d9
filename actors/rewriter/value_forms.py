"""Normal forms of what computes, and of what computes nothing."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from kopt.actors.rewriter.forms import form
from kopt.actors.rewriter.graph import (
    Aten,
    Builder,
    argument,
    aten,
    has_tensor,
    is_call,
    shape,
    tensor,
)


def _same(node: fx.Node, arg: object) -> fx.Node | None:
    """Return the argument where the call gives it back unchanged."""
    if not has_tensor(arg):
        return None
    assert isinstance(arg, fx.Node)
    if shape(arg) == shape(node) and tensor(arg).dtype == tensor(node).dtype:
        return arg
    return None


@form(aten.dropout.default, aten.feature_dropout.default, aten.alpha_dropout.default)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    del make
    idle = argument(node, "p") == 0.0 or not argument(node, "train")
    return _same(node, node.args[0]) if idle else None


@form(
    aten.detach.default,
    aten.alias.default,
    aten.lift_fresh_copy.default,
    aten.lift_fresh.default,
    aten.clone.default,
    aten.positive.default,
)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    del make
    return _same(node, node.args[0])


@form(aten.contiguous.default)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    del make
    arg = node.args[0]
    if has_tensor(arg) and isinstance(arg, fx.Node) and tensor(arg).is_contiguous():
        return _same(node, arg)
    return None


@form(
    aten.to.device,
    aten.to.dtype,
    aten.to.dtype_layout,
    aten.to.other,
    aten._to_copy.default,
    aten.type_as.default,
)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    arg = node.args[0]
    assert isinstance(arg, fx.Node)
    if tensor(arg).dtype == tensor(node).dtype:
        return _same(node, arg)
    if node.target is aten.to.dtype and len(node.args) == 2 and not node.kwargs:
        return None
    return make(aten.to.dtype, arg, tensor(node).dtype)


@form(aten.matmul.default, aten.mm.default)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    left, right = node.args
    assert isinstance(left, fx.Node)
    assert isinstance(right, fx.Node)
    if len(shape(right)) == 2 and len(shape(left)) >= 2:
        turned = make(aten.permute.default, right, [1, 0])
        return make(aten.linear.default, left, turned)
    return None


@form(aten.addmm.default)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    bias, left, right = node.args
    assert isinstance(bias, fx.Node)
    plain = argument(node, "alpha") == 1 and argument(node, "beta") == 1
    if not plain or shape(bias) != (shape(node)[1],):
        return None
    return make(aten.linear.default, left, make(aten.permute.default, right, [1, 0]), bias)


def _explicit(make: Builder, node: fx.Node, target: Aten) -> fx.Node | None:
    arg = node.args[0]
    assert isinstance(arg, fx.Node)
    if tensor(arg).dtype != tensor(node).dtype or not tensor(arg).is_floating_point():
        return None
    rank = len(shape(arg))
    dims = None if "dim" not in _names(node) else argument(node, "dim")
    keepdim = "keepdim" in _names(node) and bool(argument(node, "keepdim"))
    listed = [dims] if isinstance(dims, int) else list(dims or range(rank))
    wanted = (arg, sorted(int(d) % max(rank, 1) for d in listed), keepdim)
    if rank == 0:
        return arg
    return None if node.args == wanted and not node.kwargs else make(target, *wanted)


def _names(node: fx.Node) -> set[str]:
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    return {formal.name for formal in target._schema.arguments}


@form(aten.sum.default, aten.sum.dim_IntList)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    return _explicit(make, node, aten.sum.dim_IntList)


@form(aten.mean.default, aten.mean.dim)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    return _explicit(make, node, aten.mean.dim)


@form(aten.amax.default, aten.max.default)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    return _explicit(make, node, aten.amax.default)


@form(aten.amin.default, aten.min.default)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    return _explicit(make, node, aten.amin.default)


@form(aten.logsumexp.default)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    return _explicit(make, node, aten.logsumexp.default)


@form(operator.getitem)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    source, index = node.args
    if index != 0 or not is_call(source, aten.max.dim, aten.min.dim):
        return None
    assert isinstance(source, fx.Node)
    values = source.args[0]
    assert isinstance(values, fx.Node)
    if not tensor(values).is_floating_point():
        return None
    target = aten.amax.default if source.target is aten.max.dim else aten.amin.default
    dim = argument(source, "dim") % max(len(shape(values)), 1)
    return make(target, values, [dim], bool(argument(source, "keepdim")))


@form(
    aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool2d.default,
    aten.adaptive_avg_pool3d.default,
)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    arg = node.args[0]
    assert isinstance(arg, fx.Node)
    rank = int(str(node.target).split("pool")[1][0])
    sizes, wanted = shape(arg)[-rank:], shape(node)[-rank:]
    if all(size == 1 for size in wanted):
        first = len(shape(arg)) - rank
        return make.reduce(aten.mean.dim, arg, list(range(first, first + rank)))
    if any(size % out for size, out in zip(sizes, wanted, strict=True)):
        return None
    window = [size // out for size, out in zip(sizes, wanted, strict=True)]
    return make(getattr(aten, f"avg_pool{rank}d").default, arg, window, window)


_ALIASES: dict[Any, Any] = {
    aten.multiply.Tensor: aten.mul.Tensor,
    aten.multiply.Scalar: aten.mul.Tensor,
    aten.divide.Tensor: aten.div.Tensor,
    aten.divide.Scalar: aten.div.Tensor,
    aten.true_divide.Tensor: aten.div.Tensor,
    aten.true_divide.Scalar: aten.div.Tensor,
    aten.subtract.Tensor: aten.sub.Tensor,
    aten.subtract.Scalar: aten.sub.Tensor,
    aten.negative.default: aten.neg.default,
    aten.clip.default: aten.clamp.default,
    aten.absolute.default: aten.abs.default,
    aten.special_expit.default: aten.sigmoid.default,
    aten.min.other: aten.minimum.default,
    aten.max.other: aten.maximum.default,
}
"""Other names for the same operation, with the same arguments."""


def _renamed(make: Builder, node: fx.Node, names: dict[Any, Any]) -> fx.Node:
    named: dict[str, Any] = dict(node.kwargs)
    return make(names[node.target], *node.args, **named)


@form(*_ALIASES)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    return _renamed(make, node, _ALIASES)


_SCALAR_FORMS: dict[Any, Any] = {
    aten.add.Scalar: aten.add.Tensor,
    aten.sub.Scalar: aten.sub.Tensor,
    aten.mul.Scalar: aten.mul.Tensor,
    aten.div.Scalar: aten.div.Tensor,
}


@form(*_SCALAR_FORMS)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    return _renamed(make, node, _SCALAR_FORMS)


@form(aten.add.Tensor, aten.sub.Tensor)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    left, right = node.args
    alpha = argument(node, "alpha")
    if not has_tensor(left) and has_tensor(right) and node.target is aten.add.Tensor:
        return make.like(node, right, left)
    if alpha == 1:
        return make(node.target, left, right) if node.kwargs else None  # type: ignore[arg-type]
    scaled = make(aten.mul.Tensor, right, alpha) if has_tensor(right) else right * alpha
    return make(node.target, left, scaled)  # type: ignore[arg-type]


@form(aten.mul.Tensor)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    left, right = node.args
    if not has_tensor(left) and has_tensor(right):
        return make(aten.mul.Tensor, right, left)
    return None
