"""Applying rules to a graph until none pays: composition is by what the last rule left."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from kopt.actors.rewriter.cost import graph_seconds
from kopt.actors.rewriter.graph import Builder, calls, copied, replace, tidy
from kopt.actors.rewriter.normalise import normalise
from kopt.actors.rewriter.rules import RULES, Rule

MAX_STEPS = 200
"""Rewrites of one graph; a set of rules that goes in circles ends here."""


def all_rules() -> list[Rule]:
    """Return every rule, in the order of their names."""
    return [RULES.create(name) for name in RULES]


def rewritten(
    module: fx.GraphModule,
    *,
    mode: FakeTensorMode,
    device: Literal["cpu", "cuda"],
    without: Collection[str] = (),
) -> tuple[fx.GraphModule, list[str]]:
    """Return a rewritten copy of a graph, and the names of the rules that were applied, in order.

    Args:
        module: a graph in normal form; not changed.
        mode: of its fake tensors.
        device: whose rates decide what pays.
        without: rules left out.
    """
    result = copied(module)
    rules = [rule for rule in all_rules() if rule.name not in without]
    applied: list[str] = []
    while len(applied) < MAX_STEPS:
        name = _step(result, rules, mode=mode, device=device)
        if name is None:
            break
        applied.append(name)
        normalise(result, mode)
    return result, applied


def _step(
    module: fx.GraphModule,
    rules: list[Rule],
    *,
    mode: FakeTensorMode,
    device: Literal["cpu", "cuda"],
) -> str | None:
    """Apply the first rule that pays at the first call, or return None."""
    for rule in rules:
        for node in calls(module, *rule.targets):
            if apply(module, node, rule, mode=mode, device=device):
                return rule.name
    return None


def apply(
    module: fx.GraphModule,
    node: fx.Node,
    rule: Rule,
    *,
    mode: FakeTensorMode,
    device: Literal["cpu", "cuda"],
) -> bool:
    """Apply a rule at a call where it fits and pays; return whether it was."""
    make = Builder(module, node, mode)
    new = rule.rewrite(make, node)
    if new is None:
        make.undo()
        return False
    made = set(make.made)
    added = _needed(new, made)
    if not rule.always:
        # A replacement that was there before costs nothing, and stays.
        before = graph_seconds(
            _released(node, keep=new, made=made - added, added=added), device=device
        )
        after = graph_seconds(added, device=device)
        if after >= before:
            make.undo()
            return False
    replace(node, new)
    tidy(module)
    return True


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
