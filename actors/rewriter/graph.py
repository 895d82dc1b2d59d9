"""Small helpers over fx graphs of ATen calls: match, measure, build and replace nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

aten = torch.ops.aten


Aten = Any
"""An ATen overload, an argument of one, or a node that holds either: torch.fx types none."""


class NotRewritable(Exception):
    """A problem that runs, but whose graph the rewriter cannot see; the text says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def fake_mode(module: fx.GraphModule) -> FakeTensorMode:
    """Return the mode that the graph's fake tensors belong to.

    Raises:
        NotRewritable: the graph has no tensor.
    """
    for node in module.graph.nodes:
        held = node.meta.get("val")
        if isinstance(held, torch.Tensor) and hasattr(held, "fake_mode"):
            mode = held.fake_mode
            assert isinstance(mode, FakeTensorMode)
            return mode
    raise NotRewritable("forward computes with no tensor")


def tensor(node: fx.Node) -> torch.Tensor:
    """Return a node's fake tensor.

    Raises:
        TypeError: the node's value is no tensor.
    """
    held = node.meta.get("val")
    if not isinstance(held, torch.Tensor):
        raise TypeError(f"{node.name} holds {type(held).__name__}, expected a tensor")
    return held


def has_tensor(node: object) -> bool:
    """Return whether this is a node whose value is one tensor."""
    return isinstance(node, fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)


def shape(node: fx.Node) -> tuple[int, ...]:
    """Return the sizes of a node's tensor."""
    return tuple(int(size) for size in tensor(node).shape)


def calls(module: fx.GraphModule, *targets: object) -> Iterator[fx.Node]:
    """Yield the calls of these targets (all of them: of any), in the graph's order."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and (not targets or node.target in targets):
            yield node


def is_call(node: object, *targets: object) -> bool:
    """Return whether this is a node that calls one of these targets."""
    return isinstance(node, fx.Node) and node.op == "call_function" and node.target in targets


def argument(node: fx.Node, name: str) -> Aten:
    """Return an argument of an ATen call by its name in the schema, defaults filled in.

    Raises:
        KeyError: the schema has no such argument.
    """
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    for place, formal in enumerate(target._schema.arguments):
        if formal.name == name:
            if name in node.kwargs:
                return node.kwargs[name]
            if place < len(node.args):
                return node.args[place]
            return formal.default_value
    raise KeyError(f"{target} has no argument {name!r}")


def sole_user(node: fx.Node) -> fx.Node | None:
    """Return the only user of a node, or None where there are more or none."""
    return next(iter(node.users)) if len(node.users) == 1 else None


class Builder:
    """Adds calls before a node, with their fake values."""

    def __init__(self, module: fx.GraphModule, anchor: fx.Node, mode: FakeTensorMode) -> None:
        """Make a builder.

        Args:
            module: the graph to add to.
            anchor: the node before which calls are added.
            mode: of the graph's fake tensors.
        """
        self.module = module
        self.anchor = anchor
        self.mode = mode
        self.made: list[fx.Node] = []
        """What was added, in order."""

    def __call__(
        self,
        target: Callable[..., Any],
        *args: Aten,
        name: str = "",
        **kwargs: Aten,
    ) -> fx.Node:
        """Add a call and return its node.

        Args:
            target: an ATen overload, or operator.getitem.
            args: nodes and constants.
            name: hint for the variable's name in the emitted file.
            kwargs: the same, by keyword.
        """
        with self.module.graph.inserting_before(self.anchor):
            stem = str(getattr(target, "__name__", "value")).split(".")[0]
            node = self.module.graph.create_node(
                "call_function", target, args, kwargs, name=name or stem
            )
        values, named = fx.map_arg((args, kwargs), lambda arg: arg.meta["val"])
        with self.mode, torch.no_grad():
            node.meta["val"] = target(*values, **named)
        if name:
            node.meta["hint"] = name
        self.made.append(node)
        return node

    def like(self, node: fx.Node, *args: Aten) -> fx.Node:
        """Add a call of the same target with the same keyword arguments."""
        named: dict[str, Any] = dict(node.kwargs)
        target: Any = node.target
        return self(target, *args, **named)

    def reduce(
        self,
        target: Aten,
        x: Aten,
        dims: Sequence[int],
        *,
        keepdim: bool = True,
        name: str = "",
    ) -> fx.Node:
        """Add a sum, mean, maximum or minimum in normal form."""
        return self(target, x, list(dims), keepdim, name=name)

    def undo(self) -> None:
        """Take away what was added."""
        for node in reversed(self.made):
            self.module.graph.erase_node(node)
        self.made.clear()


def copied(module: fx.GraphModule) -> fx.GraphModule:
    """Return a graph of its own with the same nodes; fake tensors are shared."""
    graph = fx.Graph()
    results = graph.graph_copy(module.graph, {})
    graph.output(results)
    return fx.GraphModule({}, graph)


def on_device(module: fx.GraphModule, device: str) -> fx.GraphModule:
    """Return a copy whose fake tensors lie on another device; nothing is moved or needed there."""
    result = copied(module)
    if device == "cpu":
        return result

    def moved(held: torch.Tensor) -> torch.Tensor:
        mode = held.fake_mode  # type: ignore[attr-defined]
        with torch.utils._python_dispatch._disable_current_modes():
            plain = torch.empty_strided(held.shape, held.stride(), dtype=held.dtype, device="meta")
        return FakeTensor(mode, plain, torch.device(device, 0))

    for node in result.graph.nodes:
        if "val" in node.meta:
            node.meta["val"] = pytree.tree_map_only(torch.Tensor, moved, node.meta["val"])
    return result


def replace(old: fx.Node, new: fx.Node) -> None:
    """Let every user of one node read another.

    Raises:
        ValueError: shape or dtype would change, so that the rewrite is wrong.
    """
    before, after = tensor(old), tensor(new)
    if before.shape != after.shape or before.dtype != after.dtype:
        raise ValueError(
            f"{old.name} is {before.dtype}{tuple(before.shape)}, its replacement "
            f"{after.dtype}{tuple(after.shape)}"
        )
    old.replace_all_uses_with(new)


def updates_statistics(node: fx.Node) -> bool:
    """Return whether a call is a norm that also moves running statistics of its module."""
    if is_call(node, aten.batch_norm.default):
        training = argument(node, "training")
    elif is_call(node, aten.instance_norm.default):
        training = argument(node, "use_input_stats")
    else:
        return False
    return bool(training) and argument(node, "running_mean") is not None


def tidy(module: fx.GraphModule) -> None:
    """Drop calls whose values nobody reads, and that change nothing in the module."""
    for node in reversed(list(module.graph.nodes)):
        if node.op == "call_function" and not node.users and not updates_statistics(node):
            module.graph.erase_node(node)
