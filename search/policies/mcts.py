"""mcts: KernelPro's Monte Carlo tree search with progressive widening (§3.3, Alg. 1).

A walk starts at ROOT. At each node it goes on to the child of highest UCT, unless the node's
widening gate is open and the virtual child scores higher: then the node is expanded. A node
without a child to go to is expanded itself. There are no rollouts: a candidate's measured reward
is its value. Parallel asks see each other as in-flight visits (WU-UCT, Liu et al. 2020).
"""

from __future__ import annotations

from kopt.reward import RewardRule
from kopt.search.base import FinishReason
from kopt.search.config import MctsConfig
from kopt.search.node import Node
from kopt.search.searches import SEARCHES
from kopt.search.selection import (
    best_serving_child,
    exploration_weight,
    virtual_child_score,
)
from kopt.search.standing import may_expand, refresh
from kopt.search.tree_search import TreeSearch
from kopt.search.widening import Widening


class Mcts:
    """The walk. All of its state is in the tree's nodes."""

    def __init__(self, config: MctsConfig) -> None:
        self._c_uct = config.c_uct
        self._terminal_repairs = config.terminal_repairs
        self._widening = Widening(
            c_pw_failed=config.c_pw_failed,
            c_pw_successful=config.c_pw_successful,
            alpha=config.alpha,
        )

    def changed(self, node: Node) -> None:
        """Bring the standing of the node and its ancestors up to date."""
        refresh(node, widening=self._widening, terminal_repairs=self._terminal_repairs)

    def choose(self, root: Node) -> Node | None:
        """Walk from ROOT to the node to expand; None where every live branch waits."""
        if not root.serves:
            return None
        node = root
        while (child := self._step(node)) is not None:
            node = child
        return node

    def ending(self, root: Node) -> FinishReason:
        """Return `all_terminal` if every top-level branch is a dead end, else `exhausted`."""
        dead_ends = bool(root.children) and all(child.terminal for child in root.children)
        return "all_terminal" if dead_ends else "exhausted"

    def _step(self, node: Node) -> Node | None:
        """Return the child to go on to; None to expand this node."""
        if not node.children:
            return None
        visits = node.visits_expected
        weight = exploration_weight(visits, c_uct=self._c_uct)
        best = best_serving_child(node, weight=weight)
        if best is None:
            return None
        child, score = best
        if not may_expand(node, widening=self._widening):
            return child
        virtual = virtual_child_score(
            node.mean, num_children=node.children_expected, parent_visits=visits, weight=weight
        )
        return None if virtual > score else child


@SEARCHES.register("mcts")
def make_mcts(config: MctsConfig, *, rule: RewardRule, seed: int) -> TreeSearch:
    """Return a new tree search."""
    return TreeSearch(config.kind, budget=config, rule=rule, seed=seed, policy=Mcts(config))
