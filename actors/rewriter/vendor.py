"""Other ways to call the vendor's libraries for the same result: which they like is measured.

* `channels_last`: convolutions, transposed ones too, read and write their channels innermost, from
  the first of a chain to the last; element-wise calls and pools of torch keep the format. Those
  over one dimension become two-dimensional ones of height 1: libraries have no such format there.
* `turned_products`: x·Wᵀ as (W·xᵀ)ᵀ where one side has few rows: libraries take another kernel.

They are moves of a plan, not rules: no cost model knows which way wins on a given machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, Literal

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from kopt.actors.rewriter.graph import (
    Builder,
    argument,
    aten,
    calls,
    copied,
    replace,
    shape,
    tidy,
)

FEW_ROWS = 16
"""Rows of a skinny side at most."""
MANY_ROWS = 1024
"""Rows of the other side at least; below, both ways take no time."""
LEAST_CONVOLUTIONS = {"cpu": 2, "cuda": 1}
"""A chain that pays for the change of format at its ends; oneDNN changes formats for itself."""

_FORMATS: dict[Any, torch.memory_format] = {
    aten.conv2d.default: torch.channels_last,
    aten.conv_transpose2d.input: torch.channels_last,
    aten.conv3d.default: torch.channels_last_3d,
    aten.conv_transpose3d.input: torch.channels_last_3d,
}
_LINES: dict[Any, Any] = {
    aten.conv1d.default: aten.conv2d.default,
    aten.conv_transpose1d.default: aten.conv_transpose2d.input,
}
"""Convolutions over one dimension, and the same over two."""
_SPATIAL = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1}
"""Arguments with an entry for each dimension, and what they are for one of size 1."""


def vendor_moves(graph: fx.GraphModule, *, device: Literal["cpu", "cuda"]) -> tuple[str, ...]:
    """Return the names of the moves that have something to change in a graph."""
    found = []
    if len(list(calls(graph, *_FORMATS, *_LINES))) >= LEAST_CONVOLUTIONS[device]:
        found.append("channels_last")
    if any(map(_is_skinny, calls(graph, aten.linear.default))):
        found.append("turned_products")
    return tuple(found)


def with_vendor_moves(
    graph: fx.GraphModule, names: Iterable[str], *, mode: FakeTensorMode
) -> fx.GraphModule:
    """Return a graph with moves made, in a copy; the graph itself if there are none."""
    for name in names:
        graph = copied(graph)
        _MOVES[name](graph, mode)
        tidy(graph)
    return graph


def _as_planes(graph: fx.GraphModule, mode: FakeTensorMode) -> None:
    """Write convolutions over one dimension as ones over two, of height 1."""
    for node in list(calls(graph, *_LINES)):
        make = Builder(graph, node, mode)
        x, weight = node.args[:2]
        assert isinstance(x, fx.Node)
        assert isinstance(weight, fx.Node)
        if len(shape(x)) != 3:
            continue
        flat = [
            make(aten.reshape.default, each, [*shape(each)[:2], 1, shape(each)[2]])
            for each in (x, weight)
        ]
        target = _LINES[node.target]
        formals = [formal.name for formal in target._schema.arguments][3:]
        rest = []
        for name in formals:
            given = argument(node, name)
            listed = [given] if isinstance(given, int) else given
            rest.append([_SPATIAL[name], *listed] if name in _SPATIAL else given)
        made = make(target, *flat, argument(node, "bias"), *rest)
        replace(node, make(aten.reshape.default, made, list(shape(node))))
    tidy(graph)


def _channels_last(graph: fx.GraphModule, mode: FakeTensorMode) -> None:
    _as_planes(graph, mode)
    for node in list(calls(graph, *_FORMATS)):
        make = Builder(graph, node, mode)
        x, weight, *rest = node.args
        wanted = _FORMATS[node.target]
        x, weight = (
            make(aten.contiguous.default, each, memory_format=wanted) for each in (x, weight)
        )
        replace(node, make.like(node, x, weight, *rest))
    results = graph.graph.output_node()
    make = Builder(graph, results, mode)
    for node in results.all_input_nodes:
        if node.op == "call_function":  # whoever calls expects rows in order
            rows = make(aten.contiguous.default, node)
            results.replace_input_with(node, rows)


def _is_skinny(node: fx.Node) -> bool:
    x, weight = node.args[:2]
    if not isinstance(x, fx.Node) or not isinstance(weight, fx.Node):
        return False
    sides = prod(shape(x)[:-1]), shape(weight)[0]
    return len(shape(weight)) == 2 and min(sides) <= FEW_ROWS and max(sides) >= MANY_ROWS


def _turned_products(graph: fx.GraphModule, mode: FakeTensorMode) -> None:
    for node in list(calls(graph, aten.linear.default)):
        if not _is_skinny(node):
            continue
        make = Builder(graph, node, mode)
        x, weight, bias = node.args[0], node.args[1], argument(node, "bias")
        assert isinstance(x, fx.Node)
        flat = x
        if len(shape(x)) != 2:
            flat = make(aten.reshape.default, x, [prod(shape(x)[:-1]), shape(x)[-1]])
        turned = make(aten.linear.default, weight, flat)
        made = make(aten.permute.default, turned, [1, 0])
        if bias is not None:
            made = make(aten.add.Tensor, made, bias)
        made = make(aten.contiguous.default, made)
        if shape(node) != shape(made):
            made = make(aten.reshape.default, made, list(shape(node)))
        replace(node, made)


_MOVES: dict[str, Callable[[fx.GraphModule, FakeTensorMode], None]] = {
    "channels_last": _channels_last,
    "turned_products": _turned_products,
}

WORDS = {
    "channels_last": "convolutions with their channels innermost",
    "turned_products": "skinny products turned",
}
"""What a move does, for the file's header."""
