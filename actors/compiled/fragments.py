"""The operations that a group of launches computes: a part of the graph, in a form of its own.

From the operations that the group's results are the values of, back to those that its reads are the
values of. What lies between is what the kernels do, in the model's own words: run in float64 it is
the reference (profiling notes §F.4).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from kopt.actors.compiled.aten_form import NoAtenForm, in_aten
from kopt.actors.compiled.capture import Piece
from kopt.actors.rewriter.emit import Body, emit_body
from kopt.actors.rewriter.graph import NotRewritable, aten, fake_mode
from kopt.actors.rewriter.normalise import normalise
from kopt.compiled.groups import Group

LITERAL_ELEMENTS = 16
"""A constant that a group does not read as a tensor is written out up to this many elements."""
SAME_VALUE = (
    aten.clone.default,
    aten.alias.default,
    aten.detach.default,
    aten.lift_fresh_copy.default,
)
"""Operations whose result has the value, shape and dtype of what they are given."""


class NotCut(Exception):
    """A group that stays as the compiler made it; the text says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """What a group computes."""

    group: Group
    inputs: tuple[str, ...]
    """Values, those of the group's reads that its results depend on; the function's arguments."""
    body: Body
    """Statements with the arguments x0, x1, …."""
    operations: tuple[str, ...]
    """Names of ATen operations, each once, in the graph's order."""


def cut(piece: Piece, group: Group, *, same_as: Mapping[str, str] | None = None) -> Fragment:
    """Return what a group computes.

    Args:
        piece: of the group.
        group: to cut out.
        same_as: of its results that are no operation, those that have the value of one of its
            reads: a copy to other strides, which a convolution asked for.

    Raises:
        NotCut: a value is no operation of the model, or an operation has no plain form.
    """
    _check(piece, group)
    nodes = {str(node.name): node for node in piece.graph.graph.nodes}
    changed = _changed(piece, group)
    results = [
        changed[value]
        if value in changed
        else _node(piece, nodes, (same_as or {}).get(value, value))
        for value in group.results
    ]
    boundary: dict[fx.Node, str] = {}
    for value in group.reads:
        origin = piece.buffers[value].origin if value in piece.buffers else None
        if origin is None or origin not in nodes:
            continue  # told below, if it is needed
        boundary.setdefault(nodes[origin], value)
    for node, value in list(boundary.items()):
        while node.target in SAME_VALUE:
            node = node.all_input_nodes[0]
            boundary.setdefault(node, value)
    inside = _between(piece, group, results, boundary)
    if not inside:
        # A function's result would have to be copied to those strides once more.
        raise NotCut("it computes nothing: it copies to other strides")
    used = [node for node in boundary if any(node in each.all_input_nodes for each in inside)]
    used += [node for node in results if node in boundary]
    inputs = tuple(value for value in group.reads if value in {boundary[node] for node in used})
    if not inputs:
        raise NotCut("its results depend on nothing that it is given")
    try:
        module, literals = _module(piece, inside, results, boundary, inputs)
        normalise(module, fake_mode(module))
        names = [f"x{number}" for number in range(len(inputs))]
        body = emit_body(
            module,
            leaves=dict(zip(names, names, strict=True)) | literals,
            taken=[*names, "self", "torch", "F"],
            device="x0.device",
        )
    except (NotRewritable, NoAtenForm, ValueError, TypeError, KeyError) as error:
        raise NotCut(f"its operations have no plain form: {error}") from error
    named = (_name(node) for node in inside if node.target is not operator.getitem)
    operations = tuple(dict.fromkeys(named))
    return Fragment(group=group, inputs=inputs, body=body, operations=operations)


def _check(piece: Piece, group: Group) -> None:
    steps = [step for step in piece.code.launches if step.place in group.places]
    if not group.results:
        raise NotCut("nothing that it writes is read")
    alive = steps[0].holders or {}
    for value in group.reads:
        if value not in alive:
            raise NotCut(f"{value} is put together of parts while it runs")


def _changed(piece: Piece, group: Group) -> dict[str, fx.Node]:
    """What a group's launches write into tensors of the model or of forward's arguments.

    Raises:
        NotCut: the graph does not say what that is.
    """
    written = {
        write.variable
        for step in piece.code.launches
        if step.place in group.places
        for write in step.writes
        if write.of_caller
    }
    copies = {
        node.args[0].name: node.args[1]
        for node in piece.graph.graph.nodes
        if node.target is aten.copy_.default and isinstance(node.args[0], fx.Node)
    }
    found = {name: copies.get(name) for name in written}
    for name, node in found.items():
        if not isinstance(node, fx.Node):
            raise NotCut(f"it changes {name}, and the graph does not say to what")
    return {name: node for name, node in found.items() if isinstance(node, fx.Node)}


def _node(piece: Piece, nodes: Mapping[str, fx.Node], value: str) -> fx.Node:
    buffer = piece.buffers.get(value)
    if buffer is None or buffer.origin is None or buffer.origin not in nodes:
        raise NotCut(f"its result {value} is no operation of the model")
    node = nodes[buffer.origin]
    held = node.meta.get("val")
    if not isinstance(held, torch.Tensor) or tuple(held.shape) != buffer.size:
        raise NotCut(f"its result {value} has another shape than the operation {node.name}")
    return node


def _between(
    piece: Piece, group: Group, results: Sequence[fx.Node], boundary: Mapping[fx.Node, str]
) -> list[fx.Node]:
    """Return the operations between reads and results, in the graph's order."""
    found: set[fx.Node] = set()
    waiting = [node for node in results if node not in boundary]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        if node.op == "placeholder":
            raise NotCut(f"its results depend on {node.name}, which it does not read")
        if node.op == "get_attr":
            held = getattr(piece.graph, str(node.target), None)
            if not isinstance(held, torch.Tensor) or held.numel() > LITERAL_ELEMENTS:
                raise NotCut(f"its results depend on the constant {node.target}")
        elif node.op != "call_function" or _namespace(node) not in ("aten", "prims", "_operator"):
            raise NotCut(f"{_name(node)} has no plain form")
        elif _is_random(node):
            raise NotCut(f"{_name(node)} draws random numbers")
        found.add(node)
        waiting += [each for each in node.all_input_nodes if each not in boundary]
    return [node for node in piece.graph.graph.nodes if node in found]


def _module(
    piece: Piece,
    inside: Sequence[fx.Node],
    results: Sequence[fx.Node],
    boundary: Mapping[fx.Node, str],
    inputs: Sequence[str],
) -> tuple[fx.GraphModule, dict[str, str]]:
    """Return the fragment as a graph of its own, and the text of its literals by name."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    placeholders: dict[str, fx.Node] = {}
    for number, value in enumerate(inputs):
        made = graph.placeholder(f"x{number}")
        placeholders[value] = made
    literals: dict[str, str] = {}
    for node, value in boundary.items():
        if value in placeholders:
            copies[node] = placeholders[value]
            placeholders[value].meta.setdefault("val", node.meta["val"])
    for node in inside:
        if node.op != "get_attr":
            continue
        held = getattr(piece.graph, str(node.target))
        made = graph.placeholder(f"literal{len(literals)}")
        made.meta["val"] = node.meta.get("val", held)
        literals[made.name] = (
            f"torch.tensor({held.tolist()!r}, dtype={held.dtype}, device=x0.device)"
        )
        copies[node] = made
    for node in inside:
        if node.op == "get_attr":
            continue
        made = in_aten(node, graph, copies)
        if made in copies.values():
            copies[node] = made  # one of several results, of which this one is left
            continue
        held = node.meta["val"]
        single = made.target is not node.target and not isinstance(held, torch.Tensor)
        made.meta = {"val": held[0] if single else held}
        copies[node] = made
    graph.output(tuple(copies[node] for node in results))
    return fx.GraphModule({}, graph), literals


def _namespace(node: fx.Node) -> str:
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target.namespace
    return str(getattr(node.target, "__module__", ""))


def _is_random(node: fx.Node) -> bool:
    target = node.target
    return (
        isinstance(target, torch._ops.OpOverload)
        and torch.Tag.nondeterministic_seeded in target.tags
    )


def _name(node: fx.Node) -> str:
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.name.split("::")[-1]
    return str(getattr(node.target, "__name__", node.target))
