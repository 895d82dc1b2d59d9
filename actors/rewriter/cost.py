"""What a graph costs, by roofline: max(arithmetic, memory) and a launch for each call.

Only differences matter: between a graph and its rewritten form on the same device.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import torch
from torch import fx

from kopt.actors.rewriter.graph import argument, aten, has_tensor, shape, tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a device does in a second, reachable rather than peak."""

    matmul_flops: float
    conv_flops: float
    bytes: float
    launch_s: float
    """Time that a call costs however small its work."""


RATES: dict[Literal["cpu", "cuda"], Rates] = {
    "cpu": Rates(matmul_flops=1e11, conv_flops=8e10, bytes=1.5e10, launch_s=3e-6),
    "cuda": Rates(matmul_flops=5.1e13, conv_flops=1e14, bytes=4.0e12, launch_s=4e-6),
}
"""cpu: a few cores with AVX; cuda: an H200 (profiling.md §B.2, §H)."""

VIEWS = frozenset(
    (
        aten.reshape.default,
        aten.permute.default,
        aten.expand.default,
        aten.select.int,
        aten.slice.Tensor,
        aten.split.Tensor,
        aten.chunk.default,
        aten.unbind.int,
        aten.split_with_sizes.default,
        operator.getitem,
    )
)
"""Calls that give a view: nothing is computed or moved."""

PRODUCTS = frozenset(
    (aten.linear.default, aten.matmul.default, aten.bmm.default, aten.baddbmm.default)
)
CONVOLUTIONS = frozenset(
    getattr(aten, name).default for name in ("conv1d", "conv2d", "conv3d", "convolution")
)
TRANSPOSED = frozenset(
    (
        aten.conv_transpose1d.default,
        aten.conv_transpose2d.input,
        aten.conv_transpose3d.input,
    )
)


def is_launched(node: fx.Node) -> bool:
    """Return whether a node is a call that computes something."""
    return node.op == "call_function" and node.target not in VIEWS


def launches(node: fx.Node) -> int:
    """Return how many kernels a call launches, about."""
    name = str(node.target).split(".")[1] if "." in str(node.target) else ""
    if name not in _RECURRENT:
        return 1
    x, weights = node.args[0], argument(node, "params")
    assert isinstance(x, fx.Node)
    steps = shape(x)[1 if argument(node, "batch_first") else 0] if len(shape(x)) == 3 else 1
    return steps * max(len(weights) // 4, 1)


def pieces(node: fx.Node) -> int:
    """Return how many parts a call has for torch.compile."""
    parts = node.args[0] if node.target is aten.cat.default else ()
    return launches(node) + (len(parts) - 1 if isinstance(parts, list | tuple) and parts else 0)


_RECURRENT = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))


def graph_seconds(nodes: Iterable[fx.Node], *, device: Literal["cpu", "cuda"]) -> float:
    """Return the estimated time of calls run one after the other."""
    rates = RATES[device]
    return sum(node_seconds(node, rates) for node in nodes if node.op == "call_function")


def node_seconds(node: fx.Node, rates: Rates) -> float:
    """Return the estimated time of one call, in seconds."""
    if node.target in VIEWS:
        return 0.0
    moved = num_bytes(node) + sum(num_bytes(arg) for arg in node.all_input_nodes)
    flops, rate = _flops(node, rates)
    return max(flops / rate, moved / rates.bytes) + rates.launch_s


def num_bytes(node: fx.Node) -> int:
    """Return the size of a call's result, all tensors of it together."""
    held = node.meta.get("val")
    tensors: Any = held if isinstance(held, tuple | list) else [held]
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def _flops(node: fx.Node, rates: Rates) -> tuple[float, float]:
    """Return a call's arithmetic and the rate at which it is done."""
    if not has_tensor(node):
        return 0.0, rates.matmul_flops
    size = tensor(node).numel()
    if node.target is aten.linear.default:
        return 2.0 * size * shape(_operand(node, 1))[-1], rates.matmul_flops
    if node.target in PRODUCTS:
        return 2.0 * size * shape(_operand(node, 0))[-1], rates.matmul_flops
    if node.target in CONVOLUTIONS:
        return 2.0 * size * prod(shape(_operand(node, 1))[1:]), rates.conv_flops
    if node.target in TRANSPOSED:
        weight = shape(_operand(node, 1))
        return 2.0 * tensor(_operand(node, 0)).numel() * prod(weight[1:]), rates.conv_flops
    if node.target is aten.scaled_dot_product_attention.default:
        query, key = shape(_operand(node, 0)), shape(_operand(node, 1))
        return 4.0 * prod(query) * key[-2], rates.matmul_flops
    window = 1
    if "pool" in str(node.target):
        sizes = argument(node, "kernel_size") if "adaptive" not in str(node.target) else [1]
        window = prod(sizes) if isinstance(sizes, list | tuple) else sizes
    # Element-wise arithmetic runs at a small part of a product's rate.
    return float(size * window), rates.matmul_flops / 20


def _operand(node: fx.Node, place: int) -> fx.Node:
    arg = node.args[place]
    assert isinstance(arg, fx.Node)
    return arg
