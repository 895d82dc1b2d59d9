"""Proof at run time: rules are checked in float64, with random weights, before they are used.

The steps that rewrote a graph are taken again on a small twin of it: the same reference with
inputs of a small batch, and other sizes smaller too where it allows that. Both forms of the twin
run in float64 with random inputs and random parameters, so that scales are not 1, biases not 0 and
running variances not 1. Where they differ, the steps are taken one by one to find the rule at
fault. A reference that has no small twin is proved as it is, where that takes no more than seconds.

The same runs tell whether the task is degenerate: whether its result depends on the inputs, and on
anything at all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from kopt.actors.rewriter.capture import Captured, capture
from kopt.actors.rewriter.cost import graph_seconds
from kopt.actors.rewriter.graph import NotRewritable, copied, has_tensor, tensor
from kopt.actors.rewriter.normalise import normalise
from kopt.actors.rewriter.reference import ModuleMode, Smaller, first_line
from kopt.actors.rewriter.rewrite import Step, apply
from kopt.actors.rewriter.rules import RULES
from kopt.errors import ProblemError

SMALL_BATCH = 2
"""Leading size of the twin's inputs; more than 1, which some rules are about."""
DIVISIONS = (((128, 8), (16, 4)), ((128, 8),), ((512, 16),))
"""Sizes of a twin that are divided, and by what: the first that leaves the same calls is taken."""
DEEP = 150
"""Nodes of a graph whose sizes seldom come from its arguments, while each try takes long."""
MOST_BYTES = 1 << 30
"""Of a twin's inputs and weights in float64; larger ones are not proved."""
MOST_SECONDS = 2.0
"""Longest that a form of the twin may take by the cost model; longer ones are not proved."""
TOLERANCE = 1e-7
"""Of the largest value: far above float64's rounding, far below an epsilon left out."""
SCALES = (1.0, 0.05)
"""Of the two sets of random values: where one drives a clamp or a tanh flat, the other does not."""
DRAWN = 1_000_003
"""Random numbers drawn for a tensor; larger ones repeat them (a prime, so that no row does)."""


_TORCH_LOG = logging.getLogger("torch._subclasses.fake_tensor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuted:
    """Steps that may not be used."""

    rule: str | None
    """The rule at fault; None where it could not be told, or nothing could be proved."""
    reason: str


class _NotRun(Exception):
    """A graph does not run on random values in float64."""


class Prover:
    """Proves rewrites of one captured reference."""

    def __init__(self, captured: Captured, *, mode: ModuleMode) -> None:
        """Take note of a reference; its twin is made when it is first needed."""
        self._captured = captured
        self._module_mode: ModuleMode = mode
        self._twin: Captured | None = None
        self._smaller = list(_smaller(captured))
        self._draws: list[list[Any]] = []
        self._expected: list[list[torch.Tensor]] = []

    def refute(self, steps: Sequence[Step]) -> Refuted | None:
        """Return what is wrong with steps that rewrote the graph, or None where nothing is."""
        if not steps:
            return None
        try:
            return self._refute(steps)
        except _NotRun as error:
            return Refuted(rule=None, reason=f"could not be proved at run time: {error}")

    def _refute(self, steps: Sequence[Step]) -> Refuted | None:
        while True:
            twin = self._twin or self._make_twin()
            if _is_large(twin):
                return Refuted(rule=None, reason="too large to be proved at run time")
            if not self._expected:
                self._draw(twin)
            module, missed = self._again(twin, steps)
            if missed is None:
                break
            if twin is self._captured:
                return Refuted(rule=missed, reason=f"{missed} did not apply a second time")
            # The twin does not show the same structure: a small size made another rule fit.
            self._make_twin()
        if self._is_equal(module):
            return None
        module = copied(twin.graph)
        for step in steps:
            _take_step(module, step, twin)
            if not self._is_equal(module):
                reason = f"{step.rule} gave another result in float64"
                return Refuted(rule=step.rule, reason=reason)
        return Refuted(rule=None, reason="the rules together gave another result in float64")

    def degenerate(self) -> str:
        """Return what the result does not depend on, in words; empty where all is well."""
        try:
            found = self._degenerate()
            if found and self._smaller:
                # Small sizes can make a task degenerate that is not: a norm over one element.
                self._smaller = self._smaller[-1:]
                if not _is_large(self._make_twin()):
                    found = self._degenerate()
        except _NotRun:
            return ""
        return found

    def _degenerate(self) -> str:
        twin = self._twin or self._make_twin()
        if _is_large(twin):
            return ""
        if not self._expected:
            self._draw(twin)
        if not any(each.isfinite().any() for results in self._expected for each in results):
            return ""  # a logarithm of what it is never given, say: nothing can be told
        if _agree(self._expected[0], self._expected[1]):
            return "the result depends neither on the inputs nor on the weights"
        # With either set of weights, given inputs of another draw.
        others = [_values(twin, seed=2 + n, scale=scale) for n, scale in enumerate(SCALES)]
        nodes = _placeholders(twin.graph)
        for draw, other, expected in zip(self._draws, others, self._expected, strict=True):
            mixed = [
                new if node.name in twin.arguments else old
                for node, old, new in zip(nodes, draw, other, strict=True)
            ]
            if not _agree(expected, _run(twin.graph, mixed)):
                return ""
        return "the result does not depend on the inputs"

    def _make_twin(self) -> Captured:
        """Take the next twin, less small than the one before; at last the reference itself."""
        self._draws, self._expected = [], []
        while self._smaller:
            twin = _twin(self._captured, self._smaller.pop(0), self._module_mode)
            if twin is not None:
                self._twin = twin
                return twin
        self._twin = self._captured
        return self._captured

    def _draw(self, twin: Captured) -> None:
        self._draws = [_values(twin, seed=n, scale=scale) for n, scale in enumerate(SCALES)]
        self._expected = [_run(twin.graph, values) for values in self._draws]

    def _again(self, twin: Captured, steps: Sequence[Step]) -> tuple[fx.GraphModule, str | None]:
        """Return the twin after the steps, and the first that does not fit, if any."""
        module = copied(twin.graph)
        for step in steps:
            if not _take_step(module, step, twin):
                return module, step.rule
        return module, None

    def _is_equal(self, module: fx.GraphModule) -> bool:
        return all(
            _agree(expected, _run(module, values))
            for expected, values in zip(self._expected, self._draws, strict=True)
        )


def _smaller(captured: Captured) -> Iterator[Smaller]:
    """Yield ways to make the reference smaller, the smallest first."""
    sizes = [argument.shape[0] for argument in captured.arguments.values() if argument.shape]
    batch = max(sizes, key=sizes.count, default=0)
    cut = (batch, SMALL_BATCH) if batch > SMALL_BATCH else None
    for divisions in DIVISIONS if len(captured.graph.graph.nodes) <= DEEP else ():
        yield Smaller(batch=cut, divisions=divisions)
        if cut is not None:  # the leading size of a matrix may be summed over
            yield Smaller(batch=None, divisions=divisions)
    if cut is not None:
        yield Smaller(batch=cut)


def _twin(captured: Captured, smaller: Smaller, mode: ModuleMode) -> Captured | None:
    """Return the smaller reference; None where it does not run, or is another graph."""
    # torch logs what fails under fake tensors, and that a size does not fit is no news here.
    heard, _TORCH_LOG.disabled = _TORCH_LOG.disabled, True
    try:
        twin = capture(captured.problem, mode=mode, smaller=smaller)
    except (NotRewritable, ProblemError):
        return None
    finally:
        _TORCH_LOG.disabled = heard
    targets = [[node.target for node in each.graph.graph.nodes] for each in (captured, twin)]
    return twin if targets[0] == targets[1] else None


def _is_large(twin: Captured) -> bool:
    held = [tensor(node) for node in _placeholders(twin.graph) if has_tensor(node)]
    if sum(8 * each.numel() for each in held) > MOST_BYTES:
        return True
    return graph_seconds(twin.graph.graph.nodes, device="cpu") > MOST_SECONDS


def _take_step(module: fx.GraphModule, step: Step, twin: Captured) -> bool:
    nodes = list(module.graph.nodes)
    if step.place >= len(nodes) or nodes[step.place].op != "call_function":
        return False
    rule = RULES.create(step.rule)
    node = nodes[step.place]
    if node.target not in rule.targets or not apply(module, node, rule, mode=twin.mode):
        return False
    normalise(module, twin.mode)
    return True


def _placeholders(module: fx.GraphModule) -> list[fx.Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _values(twin: Captured, *, seed: int, scale: float) -> list[Any]:
    """Return a random value for each placeholder, wide."""
    source = torch.Generator().manual_seed(seed)
    values: list[Any] = []
    for node in _placeholders(twin.graph):
        if not has_tensor(node):
            values.append(node.meta["val"])  # a number: part of the graph
            continue
        held = tensor(node)
        literal = twin.literals.get(node.name)
        if literal is not None:
            value = literal.double() if literal.is_floating_point() else literal
        elif held.is_complex():
            value = torch.randn(held.shape, dtype=torch.complex128, generator=source)
        elif held.is_floating_point():
            value = _normal(held.shape, source) * scale
            if "running_var" in twin.attributes.get(node.name, ""):
                value = value.abs() + 0.5
        else:
            # 0 or 1: an index into anything that has two elements.
            value = torch.randint(0, 2, held.shape, generator=source).to(held.dtype)
        values.append(value)
    return values


def _normal(shape: torch.Size, source: torch.Generator) -> torch.Tensor:
    count = shape.numel()
    drawn = torch.randn(min(count, DRAWN), dtype=torch.float64, generator=source)
    return drawn.repeat(-(-count // DRAWN))[:count].reshape(shape)


class _Wide(fx.Interpreter):
    """Runs a graph with float64 wherever it names a smaller float."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:  # noqa: ANN401 - fx
        args, kwargs = pytree.tree_map_only(torch.dtype, _wide, (args, kwargs))
        return super().call_function(target, args, kwargs)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype.is_floating_point else dtype


def _run(module: fx.GraphModule, values: Sequence[Any]) -> list[torch.Tensor]:
    # Norms in training mode write their running statistics: each run has its own.
    own = pytree.tree_map_only(torch.Tensor, torch.clone, list(values))
    try:
        with torch.no_grad():
            return list(_Wide(module).run(*own))
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise _NotRun(first_line(error)) from error


def _agree(expected: Sequence[torch.Tensor], found: Sequence[torch.Tensor]) -> bool:
    return all(_is_near(one, other) for one, other in zip(expected, found, strict=True))


def _is_near(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    finite = one.isfinite()
    if not torch.equal(finite, other.isfinite()):
        return False
    scale = float(one[finite].abs().max()) if finite.any() else 0.0
    return not finite.any() or float((one - other)[finite].abs().max()) <= TOLERANCE * scale
