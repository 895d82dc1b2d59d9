"""What a plan comes to, in figures: its library calls, its kernels, and their time by the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import fx

from kopt.actors.rewriter.codegen import FusedKernel
from kopt.actors.rewriter.cost import RATES, VIEWS, node_seconds, num_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A plan's parts."""

    calls: dict[str, int]
    """Library calls by name; views are none."""
    kernels: tuple[str, ...]
    """Generated functions in order, each with the operations it holds: `fused_0(add, relu)`."""
    seconds: float
    """By the roofline model; compared with other plans of the model only."""


def outline(
    graph: fx.GraphModule, kernels: Sequence[FusedKernel], *, device: Literal["cpu", "cuda"]
) -> Outline:
    """Return the parts of a graph with kernels in the place of some of its calls."""
    rates = RATES[device]
    inside = {node for kernel in kernels for node in kernel.nodes}
    calls = [
        node
        for node in graph.graph.nodes
        if node.op == "call_function" and node not in inside and node.target not in VIEWS
    ]
    seconds = sum(node_seconds(node, rates) for node in calls)
    seconds += sum(_kernel_seconds(kernel, device=device) for kernel in kernels)
    return Outline(
        calls=dict(Counter(_name(node) for node in calls)),
        kernels=tuple(
            f"{kernel.name}({', '.join(_name(n) for n in kernel.nodes if n.target not in VIEWS)})"
            for kernel in kernels
        ),
        seconds=seconds,
    )


def _kernel_seconds(kernel: FusedKernel, *, device: Literal["cpu", "cuda"]) -> float:
    rates = RATES[device]
    moved = sum(map(num_bytes, (*kernel.inputs, *kernel.outputs)))
    return max(moved / rates.bytes + rates.launch_s, kernel.seconds)


def _name(node: fx.Node) -> str:
    text = str(node.target)
    return text.split(".")[1] if text.startswith("aten.") else text
