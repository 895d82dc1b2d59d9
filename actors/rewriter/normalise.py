"""One form for each thing: what rules may rely on after `normalise`.

* No-ops are gone: dropout that does nothing, detach, alias, clone, contiguous of what is
  contiguous, casts to the same dtype, metadata checks, unused calls.
* Every change of shape without change of order (view, flatten, squeeze, unsqueeze, …) is
  `aten.reshape.default(x, sizes)`; every transposition is `aten.permute.default(x, dims)`.
* A product with a 2-D right operand is `aten.linear.default(x, w, b)`, w of shape (out, in).
* `sum.dim_IntList`, `mean.dim` have explicit dimensions; the values of `max.dim` alone are `amax`.
* Arithmetic with numbers is `add/sub/mul/div.Tensor`, with no `alpha`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from kopt.actors.rewriter.graph import (
    Builder,
    argument,
    aten,
    calls,
    has_tensor,
    is_call,
    replace,
    shape,
    tensor,
    tidy,
)

Form = Callable[[Builder, fx.Node], fx.Node | None]
"""Gives the node to read instead, or None where the call stays as it is."""

FORMS: dict[Any, Form] = {}


def form(*targets: object) -> Callable[[Form], Form]:
    """Return a decorator that files the normal form of some calls."""

    def file(function: Form) -> Form:
        for target in targets:
            FORMS[target] = function
        return function

    return file


def normalise(module: fx.GraphModule, mode: FakeTensorMode) -> None:
    """Bring a graph to normal form, in place; repeated until nothing changes."""
    changed = True
    while changed:
        changed = False
        for node in calls(module):
            make = FORMS.get(node.target)
            if make is None:
                continue
            new = make(Builder(module, node, mode), node)
            if new is not None and new is not node:
                replace(node, new)
                module.graph.erase_node(node)
                changed = True
        tidy(module)


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


@form(
    aten.view.default,
    aten._unsafe_view.default,
    aten.flatten.using_ints,
    aten.unflatten.int,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.unsqueeze.default,
    aten.view_as.default,
    aten.reshape_as.default,
)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    return make(aten.reshape.default, node.args[0], list(shape(node)))


@form(aten.reshape.default)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    arg, sizes = node.args[0], list(shape(node))
    assert isinstance(arg, fx.Node)
    if shape(arg) == shape(node):
        return arg
    if is_call(arg, aten.reshape.default):
        return make(aten.reshape.default, arg.args[0], sizes)
    return None if list(node.args[1]) == sizes else make(aten.reshape.default, arg, sizes)


@form(
    aten.transpose.int,
    aten.t.default,
    aten.numpy_T.default,
    aten.mT.default,
    aten.movedim.int,
    aten.movedim.intlist,
    aten.swapaxes.default,
)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    arg = node.args[0]
    assert isinstance(arg, fx.Node)
    rank = len(shape(arg))
    # The permutation is read off a tensor whose sizes name its dimensions.
    probe = torch.empty([place + 2 for place in range(rank)], device="meta")
    moved = node.target(probe, *node.args[1:], **node.kwargs)  # type: ignore[operator]
    return make(aten.permute.default, arg, [size - 2 for size in moved.shape])


@form(aten.permute.default)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    arg, rank = node.args[0], len(shape(node))
    assert isinstance(arg, fx.Node)
    dims = [int(d) % rank for d in node.args[1]]  # type: ignore[union-attr, arg-type]
    if dims == list(range(rank)):
        return arg
    if is_call(arg, aten.permute.default):
        inner = arg.args[1]
        return make(aten.permute.default, arg.args[0], [inner[d] for d in dims])  # type: ignore[index]
    # Moving dimensions of size 1 about changes no order.
    large = [d for d in dims if shape(arg)[d] > 1]
    if large == sorted(large):
        return make(aten.reshape.default, arg, list(shape(node)))
    return None


@form(aten.expand.default, aten.expand_as.default)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    arg = node.args[0]
    assert isinstance(arg, fx.Node)
    if shape(arg) == shape(node):
        return arg
    if node.target is aten.expand_as.default:
        return make(aten.expand.default, arg, list(shape(node)))
    return None


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


def _explicit(make: Builder, node: fx.Node, target: Any) -> fx.Node | None:  # noqa: ANN401
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
        return make(aten.mean.dim, arg, list(range(first, first + rank)), True)
    if any(size % out for size, out in zip(sizes, wanted, strict=True)):
        return None
    window = [size // out for size, out in zip(sizes, wanted, strict=True)]
    return make(getattr(aten, f"avg_pool{rank}d").default, arg, window, window)


_ALIASES = {
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


@form(*_ALIASES)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    return make(_ALIASES[node.target], *node.args, **node.kwargs)


_SCALAR_FORMS = {
    aten.add.Scalar: aten.add.Tensor,
    aten.sub.Scalar: aten.sub.Tensor,
    aten.mul.Scalar: aten.mul.Tensor,
    aten.div.Scalar: aten.div.Tensor,
}


@form(*_SCALAR_FORMS)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    return make(_SCALAR_FORMS[node.target], *node.args, **node.kwargs)


@form(aten.add.Tensor, aten.sub.Tensor)
def _(make: Builder, node: fx.Node) -> fx.Node | None:
    left, right = node.args
    alpha = argument(node, "alpha")
    if not has_tensor(left) and has_tensor(right) and node.target is aten.add.Tensor:
        return make(aten.add.Tensor, right, left, **node.kwargs)
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
