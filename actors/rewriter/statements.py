"""The statements of forward: which calls are one, what each reads, and in which order they are."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import fx

from kopt.actors.rewriter.codegen import FusedKernel
from kopt.actors.rewriter.graph import aten

IN_PLACE = (
    aten.reshape.default,
    aten.permute.default,
    aten.expand.default,
    aten.slice.Tensor,
    aten.select.int,
)


Unit = fx.Node | FusedKernel
"""One statement: a call of torch, or of a generated kernel."""


def written_in_place(module: fx.GraphModule, kernels: Sequence[FusedKernel]) -> set[fx.Node]:
    """Return views that are written where they are read: those that are read once."""
    in_kernel = {node for kernel in kernels for node in kernel.nodes}
    made_by_kernel = {node for kernel in kernels for node in kernel.outputs}
    readers: dict[fx.Node, int] = {}
    for kernel in kernels:
        for node in dict.fromkeys(kernel.inputs):
            readers[node] = readers.get(node, 0) + 1
    for reader in module.graph.nodes:
        if reader not in in_kernel:
            for node in _occurrences(reader):
                readers[node] = readers.get(node, 0) + 1
    return {
        node
        for node in module.graph.nodes
        if node.target in IN_PLACE
        and readers.get(node) == 1
        and node not in in_kernel
        and node not in made_by_kernel
    }


def _occurrences(reader: fx.Node) -> list[fx.Node]:
    found: list[fx.Node] = []

    def seen(node: fx.Node) -> fx.Node:
        found.append(node)
        return node

    fx.map_arg((reader.args, reader.kwargs), seen)
    return found


def weight_calls(module: fx.GraphModule, held: Collection[str]) -> set[fx.Node]:
    """Return calls that depend on the module's own tensors only."""
    found: set[fx.Node] = set()
    for node in module.graph.nodes:
        read = node.all_input_nodes if node.op == "call_function" else []
        if read and all(arg in found or arg.name in held for arg in read):
            found.add(node)
    return found


def num_bytes(node: fx.Node) -> int:
    """Return the size of a call's tensor; 0 if it gives none."""
    held = node.meta.get("val")
    return held.numel() * held.element_size() if isinstance(held, torch.Tensor) else 0


def reads(unit: Unit) -> tuple[fx.Node, ...]:
    """Return what a statement reads."""
    return tuple(unit.all_input_nodes) if isinstance(unit, fx.Node) else unit.inputs


def outputs(unit: Unit) -> tuple[fx.Node, ...]:
    """Return the nodes whose values a statement gives."""
    return (unit,) if isinstance(unit, fx.Node) else unit.outputs


def ordered(module: fx.GraphModule, kernels: Sequence[FusedKernel]) -> list[Unit]:
    """Return the statements in an order in which each finds what it reads."""
    inside = {node: kernel for kernel in kernels for node in kernel.nodes}
    made_by: dict[fx.Node, FusedKernel] = {
        node: kernel for kernel in kernels for node in kernel.outputs
    }
    done: set[int] = set()
    units: list[Unit] = []

    def place(unit: Unit) -> None:
        if id(unit) in done:
            return
        done.add(id(unit))
        for arg in reads(unit):
            if arg.op == "call_function":
                place(made_by.get(arg, arg))
        units.append(unit)

    for node in module.graph.nodes:
        if node.op == "call_function":
            place(inside.get(node, node))
    return units
