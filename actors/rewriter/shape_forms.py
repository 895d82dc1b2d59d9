"""Normal forms of what changes a shape: reshape where the order stays, else permute."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from kopt.actors.rewriter.forms import form
from kopt.actors.rewriter.graph import Builder, aten, is_call, shape


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
    given: Any = node.args[1]
    assert isinstance(arg, fx.Node)
    if shape(arg) == shape(node):
        return arg
    if is_call(arg, aten.reshape.default):
        return make(aten.reshape.default, arg.args[0], sizes)
    return None if list(given) == sizes else make(aten.reshape.default, arg, sizes)


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
