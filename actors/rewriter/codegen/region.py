"""Which nodes of a graph become one function: connected fusible nodes between library calls.

Every node has a depth: the most library calls on any path to it. Fusible nodes of one depth that
touch each other (or read the same large tensor) make a region; no path leaves a region and comes
back, since it would have to pass a library call and so arrive deeper. A fusible node whose users
are all deeper moves down to them, so that an early element-wise op joins its late consumer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import fx

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.ir import (
    Const,
    Load,
    Map,
    Reduce,
    Scan,
    Unsupported,
    Value,
    postorder,
    stored_base,
)
from kopt.actors.rewriter.codegen.lower import lower
from kopt.actors.rewriter.codegen.lower.creators import is_created
from kopt.actors.rewriter.codegen.lower.nodes import Env
from kopt.actors.rewriter.codegen.lower.views import VIEWS
from kopt.actors.rewriter.codegen.nested import nested

SHARED_INPUT_ELEMENTS = 4096
"""Nodes that read the same tensor of at least this size belong to one region."""
COSTLY = frozenset(["exp", "expm1", "log", "log1p", "tanh", "erf", "pow", "sin", "cos", "sigmoid"])
"""Maps that are worth a kernel even alone."""

HARMLESS = frozenset({"aten.detach_.default"})
"""Overloads that are marked as mutating and change no element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Nodes that one function replaces."""

    nodes: tuple[fx.Node, ...]
    """What it replaces, in the graph's order."""
    outputs: tuple[fx.Node, ...]
    """Those whose values are used elsewhere."""
    roots: tuple[Value, ...]
    """The value of each output."""
    builder: Builder
    """Made the values, and can make more of them."""


def regions(graph: fx.Graph, *, windows: bool = False) -> list[Region]:
    """Return the regions of a graph that are worth a function, in the graph's order.

    A graph that mutates a tensor has none: its order of execution is not free.

    Args:
        graph: not changed.
        windows: whether pools and convolutions of single channels may be in them.
    """
    nodes = list(graph.nodes)
    if any(_mutates(node) for node in nodes):
        return []
    fusible = {node for node in nodes if _lowers_alone(node, windows=windows)}
    while True:
        found: list[Region] = []
        rejected: set[fx.Node] = set()
        for group in _components(nodes, fusible):
            region = _lowered(group, rejected, windows=windows)
            if region is not None:
                found.append(region)
        if not rejected:
            return found
        fusible -= rejected


def _mutates(node: fx.Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or str(target) in HARMLESS:
        return False
    return target._schema.is_mutable


def _lowers_alone(node: fx.Node, *, windows: bool) -> bool:
    if node.op != "call_function":
        return False
    if any(not isinstance(u.meta.get("val"), torch.Tensor) for u in node.all_input_nodes):
        # Items of a tuple are judged with the node that makes the tuple, when it is lowered.
        return str(node.target) == "<built-in function getitem>"
    tensors = [t for used in (*node.all_input_nodes, node) for t in _tensors(used)]
    # A number that lives on the host cannot be read by a kernel on a device.
    if len({tensor.device.type for tensor in tensors}) != 1:
        return False
    if not all(_fits(tensor) for tensor in tensors):
        return False
    try:
        lower(Builder(windows=windows), node, {})
    except Unsupported:
        return False
    return True


def _tensors(node: fx.Node) -> list[torch.Tensor]:
    held = node.meta.get("val")
    several = held if isinstance(held, tuple | list) else [held]
    return [tensor for tensor in several if isinstance(tensor, torch.Tensor)]


def _fits(tensor: torch.Tensor) -> bool:
    return tensor.numel() > 0 and not tensor.dtype.is_complex and not tensor.is_quantized


def _depths(nodes: Sequence[fx.Node], fusible: set[fx.Node]) -> dict[fx.Node, int]:
    depth: dict[fx.Node, int] = {}
    for node in nodes:
        below = max((depth[arg] for arg in node.all_input_nodes), default=0)
        leaf = node.op in ("placeholder", "get_attr") or is_created(node)
        depth[node] = below if node in fusible or leaf else below + 1
    for node in reversed(nodes):
        if node in fusible and node.users:
            depth[node] = min(
                depth[user] if user in fusible or is_created(user) else depth[user] - 1
                for user in node.users
            )
    return depth


def _components(nodes: Sequence[fx.Node], fusible: set[fx.Node]) -> list[list[fx.Node]]:
    depth = _depths(nodes, fusible)
    parent = {node: node for node in nodes if node in fusible}

    def find(node: fx.Node) -> fx.Node:
        while parent[node] is not node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    first_reader: dict[tuple[fx.Node, int], fx.Node] = {}
    for node in parent:
        for arg in node.all_input_nodes:
            if arg in parent and depth[arg] == depth[node]:
                parent[find(node)] = find(arg)
            elif arg not in parent or depth[arg] != depth[node]:
                held = None if is_created(arg) else arg.meta.get("val")
                if isinstance(held, torch.Tensor) and held.numel() >= SHARED_INPUT_ELEMENTS:
                    other = first_reader.setdefault((arg, depth[node]), node)
                    parent[find(node)] = find(other)
    groups: dict[fx.Node, list[fx.Node]] = {}
    for node in parent:
        groups.setdefault(find(node), []).append(node)
    return list(groups.values())


def _lowered(
    group: list[fx.Node], rejected: set[fx.Node], *, windows: bool, creates: bool = True
) -> Region | None:
    """Lower a group as one; nodes that have no form in this company go to `rejected`."""
    builder = Builder(windows=windows, creates=creates)
    env: Env = {}
    for node in group:
        try:
            env[node] = lower(builder, node, env)
        except Unsupported:
            rejected.add(node)
            return None
    inside = _with_created(group) if creates else set(group)
    outputs = _read_outside(group, inside)
    # A view costs torch nothing: let torch make it from its (computed) base.
    while views := {node for node in outputs if _is_view(node)}:
        computed = [node for node in group if node in inside - views]
        inside = _with_created(computed) if creates else set(computed)
        outputs = _read_outside(computed, inside)
    roots: list[Value] = []
    for node in outputs:
        value = env[node]
        if isinstance(value, tuple) or stored_base(value) is None:
            rejected.add(node)
            return None
        roots.append(value)
    if not outputs or not _worthwhile(roots):
        return None
    if creates and not any(isinstance(value, Load) for value in postorder(roots)):
        # What a kernel reads says where its results are to be.
        return _lowered(group, rejected, windows=windows, creates=False)
    return Region(
        nodes=_replaced(outputs, inside),
        outputs=tuple(outputs),
        roots=tuple(nested(builder, roots)),
        builder=builder,
    )


def _with_created(nodes: Sequence[fx.Node]) -> set[fx.Node]:
    """Return nodes with what is made of numbers alone, where only they read it."""
    inside = set(nodes)
    read = {arg for node in nodes for arg in node.all_input_nodes if arg not in inside}
    return inside | {arg for arg in read if inside.issuperset(arg.users) and is_created(arg)}


def _read_outside(nodes: Sequence[fx.Node], inside: set[fx.Node]) -> list[fx.Node]:
    return [node for node in nodes if any(user not in inside for user in node.users)]


def _replaced(outputs: Sequence[fx.Node], inside: set[fx.Node]) -> tuple[fx.Node, ...]:
    """Return what the outputs are made of, and what nothing but those nodes uses."""
    in_order = [node for node in outputs[0].graph.nodes if node in inside]
    found: set[fx.Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node in inside and node not in found:
            found.add(node)
            stack.extend(node.all_input_nodes)
    for node in reversed(in_order):  # an unused item of a tuple, say
        if all(user in found for user in node.users):
            found.add(node)
    return tuple(node for node in in_order if node in found)


def _is_view(node: fx.Node) -> bool:
    return str(node.target) in VIEWS


def _worthwhile(roots: Sequence[Value]) -> bool:
    """Whether there is more to do than one trivial element-wise op."""
    work = [value for value in postorder(roots) if isinstance(value, Map | Reduce | Scan)]
    if any(isinstance(value, Reduce | Scan) for value in work):
        return True
    if any(isinstance(value, Map) and value.op in COSTLY for value in work):
        return max(prod(value.shape) for value in work) > 1
    return len([v for v in work if isinstance(v, Map) and not _all_constant(v)]) > 1


def _all_constant(value: Map) -> bool:
    return all(isinstance(arg, Const) for arg in value.args)
