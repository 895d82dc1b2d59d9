"""Terms that a softmax or a norm takes away again."""

from __future__ import annotations

from torch import fx

from kopt.actors.rewriter.graph import Aten, Builder, argument, aten, is_call, shape
from kopt.actors.rewriter.rules.convolution import CONV, TRANSPOSED
from kopt.actors.rewriter.rules.operands import is_constant_along, reduction, shifted
from kopt.actors.rewriter.rules.rule import rule


@rule(aten.softmax.int, aten.log_softmax.int, always=True)
def softmax_of_shifted(make: Builder, node: fx.Node) -> fx.Node | None:
    """softmax(y + c) = softmax(y) for finite c that does not change along the dimension.

    Source: proved as R28.
    """
    inner = node.args[0]
    assert isinstance(inner, fx.Node)
    rank = len(shape(inner))
    dim = argument(node, "dim") % max(rank, 1)
    for way in shifted(inner):
        if way.inner_sign > 0 and is_constant_along(way.term, [dim], rank) and shape(inner):
            return make.like(node, way.inner, *node.args[1:])
    return None


@rule(aten.layer_norm.default, always=True)
def layer_norm_of_shifted(make: Builder, node: fx.Node) -> fx.Node | None:
    """layer_norm(y + c) = layer_norm(y) where c does not change along what is normalised.

    Source: KernelBench level 2, problems 3 and 34; proved as R12.
    """
    inner = node.args[0]
    assert isinstance(inner, fx.Node)
    rank = len(shape(inner))
    dims = range(rank - len(argument(node, "normalized_shape")), rank)
    for way in shifted(inner):
        if way.inner_sign > 0 and is_constant_along(way.term, dims, rank):
            return make.like(node, way.inner, *node.args[1:])
    return None


@rule(aten.instance_norm.default, aten.group_norm.default, always=True)
def norm_of_shifted(make: Builder, node: fx.Node) -> fx.Node | None:
    """A norm of each channel by itself takes away what is added to the whole channel.

    Instance norm without running statistics; group norm with one channel a group, or with one
    number added to everything.
    """
    inner = node.args[0]
    assert isinstance(inner, fx.Node)
    rank = len(shape(inner))
    by_channel = _single_channel_groups(node)
    if by_channel is None:
        return None
    for way in shifted(inner):
        if way.inner_sign < 0:
            continue
        dims = range(2, rank) if by_channel else range(1, rank)
        if is_constant_along(way.term, dims, rank):
            return make.like(node, way.inner, *node.args[1:])
    return None


@rule(aten.instance_norm.default, aten.group_norm.default, aten.batch_norm.default, always=True)
def bias_before_norm(make: Builder, node: fx.Node) -> fx.Node | None:
    """A convolution's bias before a norm of each channel by itself has no effect: drop it.

    Not where the norm keeps running statistics: those would miss it.
    Source: KernelBench level 2, problems 17 and 79; proved as R10 and R11.
    """
    product = node.args[0]
    if not is_call(product, *CONV, *TRANSPOSED):
        return None
    assert isinstance(product, fx.Node)
    if argument(product, "bias") is None or len(product.users) != 1:
        return None
    if node.target is aten.batch_norm.default:
        if not argument(node, "training") or argument(node, "running_mean") is not None:
            return None
    elif not _single_channel_groups(node):
        return None
    plain = make(_target(product), product.args[0], product.args[1], None, *product.args[3:])
    return make.like(node, plain, *node.args[1:])


@rule(aten.sub.Tensor, always=True)
def centred_term(make: Builder, node: fx.Node) -> fx.Node | None:
    """(y + c) - mean(y + c) = y - mean(y) where c does not change along the mean."""
    whole, mean = node.args[:2]
    if node.kwargs or not is_call(mean, aten.mean.dim) or not isinstance(whole, fx.Node):
        return None
    assert isinstance(mean, fx.Node)
    total = reduction(mean)
    if total.x is not whole or not total.keepdim:
        return None
    for way in shifted(whole):
        if way.inner_sign > 0 and is_constant_along(way.term, total.dims, len(shape(whole))):
            inner_mean = make.reduce(aten.mean.dim, way.inner, total.dims)
            return make(aten.sub.Tensor, way.inner, inner_mean)
    return None


def _single_channel_groups(node: fx.Node) -> bool | None:
    """Whether each channel is normalised by itself; None where statistics are kept or given."""
    if node.target is aten.instance_norm.default:
        if argument(node, "running_mean") is not None or not argument(node, "use_input_stats"):
            return None
        return True
    if node.target is aten.group_norm.default:
        return bool(argument(node, "num_groups") == shape(node)[1])
    return None


def _target(node: fx.Node) -> Aten:
    return node.target
