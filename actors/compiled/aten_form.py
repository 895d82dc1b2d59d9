"""Operations that Inductor put in place of ATen's, as ATen's again: a reference is to be plain."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from kopt.actors.rewriter.graph import aten

_POOLS = ("_low_memory_max_pool_with_offsets", "_low_memory_max_pool2d_with_offsets")
"""Its first result is the maximum; its second, where that was, in a form of Inductor's own."""
_ONLINE_SOFTMAX = "prepare_softmax_online"
"""Gives the maximum along a dimension, and the sum of the exponentials of what lies below it."""
_POOL_BY_DIMENSIONS: dict[int, Any] = {2: aten.max_pool2d.default, 3: aten.max_pool3d.default}


class NoAtenForm(Exception):
    """An operation of Inductor's own that none of ATen's stands for."""


def in_aten(node: fx.Node, graph: fx.Graph, copies: Mapping[fx.Node, fx.Node]) -> fx.Node:
    """Add a node's operation to a graph, in ATen's words, and return it.

    Args:
        node: a call.
        graph: to add to.
        copies: for each node that is read, what stands for it in the graph.

    Raises:
        NoAtenForm: there are no such words.
    """
    if node.target is operator.getitem:
        source, index = node.args
        assert isinstance(source, fx.Node)
        if _prim(source) in _POOLS:
            if index != 0:
                raise NoAtenForm("where a maximum lies is kept in a form of Inductor's own")
            return copies[source]
        if _prim(source) == _ONLINE_SOFTMAX:
            largest = copies[source]
            return largest if index == 0 else _sum_of_exponentials(largest, graph)
    name = _prim(node)
    if not name:
        return graph.node_copy(node, lambda each: copies[each])
    arguments: Any = fx.map_arg(node.args, lambda each: copies[each])
    if name == "convert_element_type":
        return graph.call_function(aten.to.dtype, arguments)
    if name == "iota":
        return _counted(arguments[0], node.kwargs, graph)
    if name == "fma":
        left, right, added = arguments
        product = graph.call_function(aten.mul.Tensor, (left, right))
        product.meta["val"] = node.meta["val"]
        return graph.call_function(aten.add.Tensor, (product, added))
    if name == _ONLINE_SOFTMAX:
        read, dim = arguments
        return graph.call_function(aten.amax.default, (read, [dim], True))
    if name in _POOLS:
        pool = _POOL_BY_DIMENSIONS.get(len(arguments[1]))
        if pool is not None:
            return graph.call_function(pool, arguments)
    raise NoAtenForm(f"{node.target} is Inductor's own")


def _counted(length: int, of: Mapping[str, Any], graph: fx.Graph) -> fx.Node:
    """Add numbers that are a step apart; of: the first, the step, their dtype and device."""
    start, step = of["start"], of["step"]
    places = {name: of[name] for name in ("dtype", "device")}
    return graph.call_function(aten.arange.start_step, (start, start + step * length, step), places)


def _sum_of_exponentials(largest: fx.Node, graph: fx.Graph) -> fx.Node:
    """Add the sum of the exponentials of what a maximum was taken of, less that maximum."""
    read: Any
    read, dims, _ = largest.args
    below = graph.call_function(aten.sub.Tensor, (read, largest))
    exponentials = graph.call_function(aten.exp.default, (below,))
    below.meta["val"] = exponentials.meta["val"] = read.meta["val"]
    return graph.call_function(aten.sum.dim_IntList, (exponentials, dims, True))


def _prim(node: fx.Node) -> str:
    """The name of a prim; empty for an operation of ATen's, and for what is none."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload) and target.namespace == "prims":
        return target._schema.name.removeprefix("prims::")
    return ""
