"""Applying rules to a graph until none pays: composition is by what the last rule left."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from kopt.actors.rewriter.cost import graph_seconds
from kopt.actors.rewriter.graph import Builder, calls, copied, replace, tensor, tidy
from kopt.actors.rewriter.normalise import normalise
from kopt.actors.rewriter.rules import RULES, Rule

log = logging.getLogger(__name__)

DeviceKind = Literal["cpu", "cuda"]

MAX_STEPS = 200
"""Rewrites of one graph; a set of rules that goes in circles ends here."""
MAX_DETOURS = 4
"""Rewrites that are accepted for what they make possible."""
MAX_TRIES = 24
"""Rewrites that are tried for what they make possible, for each one accepted."""
LEAST_GAIN = 0.98
"""A detour must bring the whole graph's cost below this part of it."""


class Step(NamedTuple):
    """One application of a rule."""

    rule: str
    place: int
    """Of the call among the graph's nodes, just before."""


def all_rules() -> list[Rule]:
    """Return every rule, in the order of their names."""
    return [RULES.create(name) for name in RULES]


def rewritten(
    module: fx.GraphModule,
    *,
    mode: FakeTensorMode,
    device: DeviceKind,
    without: Collection[str] = (),
) -> tuple[fx.GraphModule, list[Step]]:
    """Return a rewritten copy of a graph, and the steps that led there, in order.

    Args:
        module: a graph in normal form; not changed.
        mode: of its fake tensors.
        device: whose rates decide what pays.
        without: rules left out.
    """
    rules = [rule for rule in all_rules() if rule.name not in without]
    result, applied = _greedy(copied(module), rules, mode=mode, device=device)
    for _ in range(MAX_DETOURS):
        found = _detour(result, rules, mode=mode, device=device)
        if found is None:
            break
        result = found[0]
        applied += found[1]
    return result, applied


def _greedy(
    module: fx.GraphModule, rules: Sequence[Rule], *, mode: FakeTensorMode, device: DeviceKind
) -> tuple[fx.GraphModule, list[Step]]:
    """Apply rules that pay, in place, until there are none."""
    applied: list[Step] = []
    while len(applied) < MAX_STEPS:
        step = _step(module, rules, mode=mode, device=device)
        if step is None:
            break
        applied.append(step)
        normalise(module, mode)
    return module, applied


def _step(
    module: fx.GraphModule, rules: Sequence[Rule], *, mode: FakeTensorMode, device: DeviceKind
) -> Step | None:
    """Apply the best rule at the last call where one pays; return the step, or None."""
    places = {node: place for place, node in enumerate(module.graph.nodes)}
    for node in reversed(list(calls(module))):
        best: tuple[float, Rule] | None = None
        for rule in rules:
            if node.target not in rule.targets:
                continue
            gain = _try(module, node, rule, mode=mode, device=device)
            if gain is not None and gain > 0 and (best is None or gain > best[0]):
                best = gain, rule
        if best is not None and apply(module, node, best[1], mode=mode):
            return Step(best[1].name, places[node])
    return None


def _detour(
    module: fx.GraphModule, rules: Sequence[Rule], *, mode: FakeTensorMode, device: DeviceKind
) -> tuple[fx.GraphModule, list[Step]] | None:
    """Return a graph that costs less by way of one rewrite that does not pay by itself."""
    start = graph_seconds(module.graph.nodes, device=device)
    tries = 0
    for place, node in enumerate(module.graph.nodes):
        for rule in rules:
            if node.op != "call_function" or node.target not in rule.targets:
                continue
            gain = _try(module, node, rule, mode=mode, device=device)
            if gain is None or gain > 0:
                continue
            tries += 1
            if tries > MAX_TRIES:
                return None
            other = copied(module)
            twin = list(other.graph.nodes)[place]
            apply(other, twin, rule, mode=mode)
            normalise(other, mode)
            other, applied = _greedy(other, rules, mode=mode, device=device)
            if graph_seconds(other.graph.nodes, device=device) < start * LEAST_GAIN:
                return other, [Step(rule.name, place), *applied]
    return None


def apply(module: fx.GraphModule, node: fx.Node, rule: Rule, *, mode: FakeTensorMode) -> bool:
    """Apply a rule at a call if it fits there, whatever it costs; return whether it did."""
    make = Builder(module, node, mode)
    new = _offer(make, node, rule)
    if new is None:
        make.undo()
        return False
    replace(node, new)
    tidy(module)
    return True


def _offer(make: Builder, node: fx.Node, rule: Rule) -> fx.Node | None:
    """Return what a rule offers for a call; a rule that fails, or offers what does not fit, is out.

    Rules come from other packages too, and a fault in one must not cost the problem its search.
    """
    try:
        new = rule.rewrite(make, node)
    except Exception:
        log.exception("rule %s failed at %s", rule.name, node.format_node())
        return None
    if new is None:
        return None
    before, after = tensor(node), tensor(new)
    if before.shape != after.shape or before.dtype != after.dtype:
        log.error(
            "rule %s offers %s%s for %s%s at %s",
            rule.name,
            after.dtype,
            tuple(after.shape),
            before.dtype,
            tuple(before.shape),
            node.format_node(),
        )
        return None
    return new


def _try(
    module: fx.GraphModule, node: fx.Node, rule: Rule, *, mode: FakeTensorMode, device: DeviceKind
) -> float | None:
    """Return the seconds that a rule would save at a call; None where it does not fit.

    The graph is as before. A rule that can only save work is worth something in any case.
    """
    make = Builder(module, node, mode)
    new = _offer(make, node, rule)
    if new is None:
        make.undo()
        return None
    made = set(make.made)
    added = _needed(new, made)
    # A replacement that was there before costs nothing, and stays.
    released = _released(node, keep=new, made=made - added, added=added)
    gain = graph_seconds(released, device=device) - graph_seconds(added, device=device)
    make.undo()
    return max(gain, 1e-9) if rule.always else gain


def _needed(new: fx.Node, made: set[fx.Node]) -> set[fx.Node]:
    """Return those of the calls made that the replacement reads."""
    needed: set[fx.Node] = set()
    waiting = [new]
    while waiting:
        node = waiting.pop()
        if node in made and node not in needed:
            needed.add(node)
            waiting.extend(node.all_input_nodes)
    return needed


def _released(
    node: fx.Node, *, keep: fx.Node, made: set[fx.Node], added: set[fx.Node]
) -> set[fx.Node]:
    """Return the calls that nobody reads any more once the node is replaced."""
    kept = {arg for new in added for arg in new.all_input_nodes} | {keep}
    released: set[fx.Node] = set()
    waiting = [node]
    while waiting:
        dead = waiting.pop()
        if dead in released or dead in kept or dead in made or dead.op != "call_function":
            continue
        if dead is not node and any(u not in released and u not in made for u in dead.users):
            continue
        released.add(dead)
        waiting.extend(dead.all_input_nodes)
    return released
