"""best_of_n: the control. Every candidate is a fresh seed from ROOT; nothing is learnt."""

from __future__ import annotations

from kopt.reward import RewardRule
from kopt.search.base import FinishReason
from kopt.search.config import BestOfNConfig
from kopt.search.node import Node
from kopt.search.searches import SEARCHES
from kopt.search.tree_search import TreeSearch


class BestOfN:
    """Expands ROOT, and never waits."""

    def changed(self, node: Node) -> None:
        """Ignore the change: nothing here depends on what came before."""

    def choose(self, root: Node) -> Node | None:
        """Return ROOT, or None once its programmer has nothing more."""
        return None if root.closed else root

    def ending(self, root: Node) -> FinishReason:
        """Return `exhausted`: only a closed ROOT ends it before its budget."""
        return "exhausted"


@SEARCHES.register("best_of_n")
def make_best_of_n(config: BestOfNConfig, *, rule: RewardRule, seed: int) -> TreeSearch:
    """Return a new best-of-n search."""
    return TreeSearch(config.kind, budget=config, rule=rule, seed=seed, policy=BestOfN())
