"""From a graph to the body of forward: one readable line for each call.

A variable that dies in a line gives its name to the result (`x = F.relu(x)`), so that memory is
freed as in code written by hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from kopt.actors.rewriter.codegen import FusedKernel
from kopt.actors.rewriter.cost import VIEWS
from kopt.actors.rewriter.graph import Aten, NotRewritable
from kopt.actors.rewriter.spelling import spell
from kopt.actors.rewriter.statements import (
    IN_PLACE,
    Unit,
    num_bytes,
    ordered,
    outputs,
    reads,
    weight_calls,
    written_in_place,
)

DELETE_BYTES = 16 << 20
"""A dead tensor of this size that no result takes the name of is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Statements of forward, and the expressions of what it gives back."""

    lines: tuple[str, ...]
    results: tuple[str, ...]
    folding: tuple[str, ...] = ()
    """Statements before those of `lines` that depend on the module's own tensors alone."""
    folded: tuple[str, ...] = ()
    """Names that `lines` reads of what `folding` computes."""
    folds: bool = False
    """Whether anything but a view depends on the module's own tensors alone."""
    weights: tuple[str, ...] = ()
    """Expressions of the module's tensors that `folding` reads."""


def emit_body(
    module: fx.GraphModule,
    *,
    leaves: Mapping[str, str],
    taken: Sequence[str],
    device: str,
    kernels: Sequence[FusedKernel] = (),
    owner: str = "self",
    fold_first: bool = False,
) -> Body:
    """Write the graph's calls as statements.

    Args:
        module: a graph in normal form.
        leaves: the expression of each placeholder, such as `self.linear.weight`.
        taken: names that variables may not have.
        device: expression of the device that new tensors are made on, such as `x.device`.
        kernels: generated kernels in place of the nodes they name.
        owner: what the body calls the module.
        fold_first: put what depends on the module's own tensors alone before all else, apart.

    Raises:
        NotRewritable: an argument has no Python spelling.
    """
    writer = _Writer(
        module, leaves=leaves, taken=taken, device=device, kernels=kernels, owner=owner
    )
    return writer.body(fold_first=fold_first)


class _Writer:
    def __init__(
        self,
        module: fx.GraphModule,
        *,
        leaves: Mapping[str, str],
        taken: Sequence[str],
        device: str,
        kernels: Sequence[FusedKernel],
        owner: str,
    ) -> None:
        self._module = module
        self._held = {
            n for n, text in leaves.items() if text.startswith((f"{owner}.", f"{owner}["))
        }
        self._leaves = leaves
        self._taken = set(taken)
        self._device = device
        self._inlined = written_in_place(module, kernels)
        self._units = [u for u in ordered(module, kernels) if u not in self._inlined]
        self._weights = weight_calls(module, self._held)
        self._last = self._last_readers()
        self._names: dict[fx.Node, str] = {}
        self._lines: list[str] = []

    def body(self, *, fold_first: bool) -> Body:
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                self._names[node] = self._leaves.get(node.name, "")
        folding = [unit for unit in self._units if self._folds(unit)]
        folds = any(not isinstance(unit, fx.Node) or unit.target not in VIEWS for unit in folding)
        if not (folds and fold_first):
            folding = []
        if folding:
            rest = [unit for unit in self._units if unit not in folding]
            self._units = [*folding, *rest]
            self._last = self._last_readers()
        for place, unit in enumerate(self._units[: len(folding)]):
            self._write(unit, place)
        apart, self._lines = self._lines, []
        for place, unit in enumerate(self._units[len(folding) :], start=len(folding)):
            self._write(unit, place)
        results = self._module.graph.output_node().args[0]
        assert isinstance(results, tuple | list)
        made = {node for unit in folding for node in outputs(unit)}
        last = {node: place for node, place in self._last.items() if node in made}
        read = {arg for unit in folding for arg in self._variables(reads(unit))}
        leaves = [n for n in self._module.graph.nodes if n in read and n.op == "placeholder"]
        return Body(
            lines=tuple(self._lines),
            results=tuple(self._result(node) for node in results if isinstance(node, fx.Node)),
            folds=folds,
            folding=tuple(apart),
            folded=tuple(self._names[n] for n, place in last.items() if place >= len(folding)),
            weights=tuple(self._names[node] for node in leaves),
        )

    def _folds(self, unit: Unit) -> bool:
        """Whether a statement depends on the module's own tensors alone."""
        if isinstance(unit, fx.Node):
            return unit in self._weights
        read = self._variables(unit.inputs)
        return bool(read) and all(n in self._weights or n.name in self._held for n in read)

    def _result(self, node: fx.Node) -> str:
        """Return the expression of a result; one that is an input's memory is copied."""
        base = node
        while base.target in IN_PLACE and base.op == "call_function":
            base = base.all_input_nodes[0]
        text = self._render(node)
        return f"{text}.clone()" if base.op == "placeholder" else text

    def _last_readers(self) -> dict[fx.Node, int]:
        last: dict[fx.Node, int] = {}
        for place, unit in enumerate(self._units):
            for arg in self._variables(reads(unit)):
                last[arg] = place
        results = self._variables(self._module.graph.output_node().all_input_nodes)
        last.update(dict.fromkeys(results, len(self._units)))
        return last

    def _variables(self, read: Sequence[fx.Node]) -> list[fx.Node]:
        """Return what is read, by way of expressions written in place too."""
        found: list[fx.Node] = []
        for node in read:
            found += self._variables(node.all_input_nodes) if node in self._inlined else [node]
        return found

    def _write(self, unit: Unit, place: int) -> None:
        dying = [
            arg
            for arg in dict.fromkeys(self._variables(reads(unit)))
            if arg.op == "call_function" and self._last[arg] == place
        ]
        # Names that say what a value is ("folded_weight") are not handed on.
        unnamed = [arg for arg in dying if "hint" not in arg.meta and arg not in self._weights]
        free = list(dict.fromkeys(self._names[arg] for arg in unnamed))
        if isinstance(unit, fx.Node):
            text = spell(unit, self._render)
            self._names[unit] = name = self._name(unit, free)
            self._lines.append(f"{name} = {text}")
        else:
            fields = {arg.name: self._render(arg) for arg in unit.inputs}
            for node in unit.outputs:
                self._names[node] = fields[node.name] = self._name(node, free)
            self._lines.extend(unit.call.format(**fields).splitlines())
        large = [arg for arg in dying if num_bytes(arg) >= DELETE_BYTES]
        dropped = [n for n in dict.fromkeys(self._names[a] for a in large) if n in free]
        if dropped:
            self._lines.append(f"del {', '.join(dropped)}")
            self._taken -= set(dropped)

    def _name(self, node: fx.Node, free: list[str]) -> str:
        if free and "hint" not in node.meta and node not in self._weights:
            return free.pop(0)
        stem = node.meta.get("hint") or ("weight" if node in self._weights else "y")
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

    def _render(self, value: Aten) -> str:
        if isinstance(value, fx.Node):
            if value in self._inlined:
                return spell(value, self._render)
            return self._names[value]
        if isinstance(value, torch.device):
            return self._device
        if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
            return str(value)
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        if isinstance(value, tuple | list):
            inside = ", ".join(self._render(item) for item in value)
            if isinstance(value, list):
                return f"[{inside}]"
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        raise NotRewritable(f"an argument of type {type(value).__name__} has no spelling")
