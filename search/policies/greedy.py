"""greedy: KernelPro's greedy search (App. E), the control of its ablation of mcts.

"Each iteration expands only the current best node, with fresh restart after consecutive failures.
Repair targets are selected via a composite priority" (frontier.py gives it). The paper says no
more, so here, with an expansion *failed* if none of its candidates is correct:

* Something correct is known: its best node is expanded. After `repair_after` failed expansions in a
  row a repair is due: the failed node closest to correctness is expanded instead.
* Nothing correct is known: the failed node closest to correctness is expanded; ROOT before there
  is one.
* Each `restart_after`-th failed expansion in a row makes a restart due: ROOT is expanded. The
  restart's own failure begins the next count. The tree is kept: a better seed takes over.

"In a row" is in the order asked, so that the order of answers does not matter: the failed
expansions after the last one with a correct candidate. One whose first answers failed counts as
failed until one of the others is correct.

With many in flight, what is due is asked once: while a restart or a repair is under way, the other
asks go on with the best node (without one, with the next failed nodes, each repaired by one
expansion at a time, and then with fresh seeds). Nothing pending counts as a failure, so that more
workers do not make more restarts than the answers call for. With one expansion in flight it is the
sequential algorithm above.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from kopt.reward import RewardRule
from kopt.search.base import FinishReason
from kopt.search.config import GreedyConfig
from kopt.search.frontier import Frontier
from kopt.search.node import Node
from kopt.search.searches import SEARCHES
from kopt.search.tree_search import TreeSearch


class FailureStreak:
    """The failed expansions since the last one with a correct candidate, in the order asked."""

    def __init__(self) -> None:
        self._last_success = -1
        self._failed: list[int] = []

    def changed(self, node: Node) -> None:
        """Hear of a candidate; one heard before changes nothing."""
        ordinal = node.ordinal
        if ordinal is None or ordinal <= self._last_success:
            return
        if node.status == "correct":
            self._last_success = ordinal
            del self._failed[: bisect_right(self._failed, ordinal)]
            return
        place = bisect_left(self._failed, ordinal)
        if self._failed[place : place + 1] != [ordinal]:
            self._failed.insert(place, ordinal)

    @property
    def length(self) -> int:
        """How many there are."""
        return len(self._failed)


class Greedy:
    """The choice among the best node, the best repair and a fresh seed."""

    def __init__(self, config: GreedyConfig) -> None:
        self._repair_after = config.repair_after
        self._restart_after = config.restart_after
        self._frontier = Frontier()
        self._streak = FailureStreak()

    def changed(self, node: Node) -> None:
        """Keep the order of the open nodes and the count of failures."""
        self._frontier.changed(node)
        self._streak.changed(node)

    def choose(self, root: Node) -> Node | None:
        """Return what is due; the next best where that is closed or under way already."""
        seed = None if root.closed else root
        best, repair = self._frontier.best(), self._frontier.repair()
        step = self._streak.length % self._restart_after
        if self._streak.length and step == 0 and not root.pending_here:
            order = (seed, best, repair)
        elif best is None or (step >= self._repair_after and not self._frontier.is_repairing()):
            order = (repair, best, seed)
        else:
            order = (best, repair, seed)
        return next((node for node in order if node is not None), None)

    def ending(self, root: Node) -> FinishReason:
        """Return `exhausted`: greedy goes on for as long as any node is open."""
        return "exhausted"


@SEARCHES.register("greedy")
def make_greedy(config: GreedyConfig, *, rule: RewardRule, seed: int) -> TreeSearch:
    """Return a new greedy search."""
    return TreeSearch(config.kind, budget=config, rule=rule, seed=seed, policy=Greedy(config))
