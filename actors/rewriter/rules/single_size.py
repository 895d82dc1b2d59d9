"""Reductions, scans and pools over nothing: along a dimension of size 1 they change nothing."""

from __future__ import annotations

from typing import Any

from torch import fx

from kopt.actors.rewriter.graph import Builder, argument, aten, shape, tensor
from kopt.actors.rewriter.rules.rule import rule


@rule(
    aten.sum.dim_IntList,
    aten.mean.dim,
    aten.amax.default,
    aten.amin.default,
    aten.logsumexp.default,
    always=True,
)
def reduce_single(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ, mean, max, min and log Σ exp of one element are that element.

    Source: KernelBench level 2, problems 18, 42, 44 and 51; proved as R03.
    """
    x, dims, keepdim = _reduction(node)
    sizes = shape(x)
    single = [d for d in dims if sizes[d] == 1]
    if not single or tensor(x).dtype != tensor(node).dtype:
        return None
    rest = [d for d in dims if sizes[d] != 1]
    if not rest:
        return make(aten.reshape.default, x, list(shape(node)))
    kept = make.reduce(node.target, x, rest)
    return kept if keepdim else make(aten.reshape.default, kept, list(shape(node)))


def _reduction(node: fx.Node) -> tuple[fx.Node, list[int], bool]:
    x = node.args[0]
    assert isinstance(x, fx.Node)
    listed: Any = argument(node, "dim")
    rank = len(shape(x))
    dims = [listed] if isinstance(listed, int) else list(listed or range(rank))
    return x, [d % rank for d in dims] if rank else [], bool(argument(node, "keepdim"))


@rule(
    aten.cumsum.default,
    aten.cumprod.default,
    aten.flip.default,
    always=True,
)
def scan_single(make: Builder, node: fx.Node) -> fx.Node | None:
    """A running sum, a running product or a reversal of one element is that element."""
    x = node.args[0]
    assert isinstance(x, fx.Node)
    listed = argument(node, "dims" if node.target is aten.flip.default else "dim")
    dims = [listed] if isinstance(listed, int) else list(listed)
    rank = len(shape(x))
    if tensor(x).dtype != tensor(node).dtype or any(shape(x)[d % rank] != 1 for d in dims):
        return None
    return make(aten.reshape.default, x, list(shape(x)))


@rule(aten.softmax.int, aten.log_softmax.int, always=True)
def softmax_single(make: Builder, node: fx.Node) -> fx.Node | None:
    """The softmax of one finite element is 1, its logarithm 0."""
    x, dim = node.args[0], argument(node, "dim")
    assert isinstance(x, fx.Node)
    if tensor(x).dtype != tensor(node).dtype or not shape(x) or shape(x)[dim] != 1:
        return None
    number = 1.0 if node.target is aten.softmax.int else 0.0
    return make(aten.full_like.default, x, number)


@rule(
    aten.avg_pool1d.default,
    aten.avg_pool2d.default,
    aten.avg_pool3d.default,
    aten.max_pool1d.default,
    aten.max_pool2d.default,
    aten.max_pool3d.default,
    always=True,
)
def pool_single(make: Builder, node: fx.Node) -> fx.Node | None:
    """A pool with windows of one element, a step apart, gives its input."""
    x = node.args[0]
    assert isinstance(x, fx.Node)
    windows = argument(node, "kernel_size")
    strides = argument(node, "stride") or windows
    divisor = "avg" in str(node.target) and "1d" not in str(node.target)
    if divisor and argument(node, "divisor_override") is not None:
        return None
    if any(w != 1 for w in windows) or any(s != 1 for s in strides) or shape(x) != shape(node):
        return None
    return make(aten.reshape.default, x, list(shape(x)))
