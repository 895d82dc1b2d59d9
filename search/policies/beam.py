"""beam: KernelOPT's profiling-guided beam search (Alg. 1, §4.2, §4.3).

A round spreads N plans over the members of the beam; the first round starts from ROOT, the paper's
baseline. A plan that fails is repaired up to K times, each repair made from the last. Once nothing
of the round is pending or to be repaired, DiverseSelect makes the next beam of the candidates that
passed (diverse.py). The search gives up after `idle_iterations` rounds without a better candidate.

Where the paper is silent, or cannot be taken by the letter:

* Each member gets an equal share of the N plans, and those left over go to the members of highest
  UCB: reward + c * sqrt(ln V / v), V the candidates told in all, v those of the member's chain. By
  the letter (each gets N/B, UCB unused, a first beam of one) the beam would never grow.
* A round in which nothing passed leaves the beam as it was.
* In a meltdown (directions.py) ROOT joins the next round, dealt first, and so a new chain may
  begin: the paper's "diversity enforcement", as far as a search can enforce it. Repairs carry out
  the plan that they repair, and so their directions do not count.
* Better is a higher reward than any before; the first correct candidate is better than none.
* Members that are closed get no plans. With all of them closed, the best open correct node of the
  tree stands in, then ROOT, then failed nodes in the order of repair.

Rounds are generations: with many in flight a search asks what the round still has, and then waits
for its answers. With nothing pending it always has something to ask, or is over.
"""

from __future__ import annotations

from bisect import bisect_left

from kopt.direction import direction_of
from kopt.reward import RewardRule
from kopt.search.base import FinishReason
from kopt.search.config import BeamConfig
from kopt.search.directions import has_collapsed
from kopt.search.diverse import diverse_select
from kopt.search.frontier import Frontier
from kopt.search.ledger import Ledger
from kopt.search.node import Node, virtual_root
from kopt.search.rounds import Round
from kopt.search.searches import SEARCHES
from kopt.search.selection import exploration_weight, uct_score
from kopt.search.tree_search import TreeSearch


class Beam:
    """The beam and its round. All of it follows from the facts, whatever the order of answers."""

    def __init__(self, config: BeamConfig, *, ledger: Ledger) -> None:
        self._config = config
        self._ledger = ledger
        self._root = virtual_root()
        self._frontier = Frontier()
        self._num_opened = 0
        self._due: list[int] = []
        self._nodes: dict[int, Node] = {}
        self._beam: list[Node] = []
        self._best: float | None = None
        self._directions: list[str] = []
        self._num_idle = 0
        self._round = self._new_round([])

    def changed(self, node: Node) -> None:
        """Keep the round's account, and begin the next one where this one is over."""
        if node.parent is None and node is not self._root:
            self._root = node
            self._beam = [node]
            self._round = self._new_round(self._beam)
        self._frontier.changed(node)
        while self._num_opened < len(self._ledger.expansions):
            self._hear_opened(node)
        self._round.recount(node, ledger=self._ledger)
        if node.parent is not None:
            self._hear_candidate(node)
            self._keep_due(node.parent)
        self._keep_due(node)
        if self._is_round_over():
            self._begin_round()

    def choose(self, root: Node) -> Node | None:
        """Return where the next plan or repair of the round is asked; None to wait, or at the end.

        Plans come before repairs, so that no chain waits for another's.
        """
        if self._has_given_up():
            return None
        if self._round.num_missing > 0:
            plan = self._next_plan(root)
            if plan is not None:
                return plan[0]
        if self._due:
            return self._nodes[self._due[0]]
        return self._frontier.repair() if self._round.num_missing > 0 else None

    def num_slots(self, node: Node) -> int:
        """Return how many candidates to ask at the node that was chosen."""
        plan = None if node.status == "failed" else self._next_plan(self._root)
        return 1 if plan is None else plan[1]

    def ending(self, root: Node) -> FinishReason:
        """Return `idle` if the latest rounds brought nothing better, else `exhausted`."""
        return "idle" if self._has_given_up() else "exhausted"

    def _next_plan(self, root: Node) -> tuple[Node, int] | None:
        deal = self._round.next_deal()
        if deal is not None:
            return deal
        stand_in = self._frontier.best() or (None if root.closed else root)
        return None if stand_in is None else (stand_in, self._round.num_missing)

    def _has_given_up(self) -> bool:
        limit = self._config.idle_iterations
        return limit is not None and self._num_idle >= limit

    def _hear_opened(self, node: Node) -> None:
        ordinal = self._num_opened
        if node.status != "failed":
            if self._round.num_missing <= 0:
                # A restored search, in which the last round ended with the closing of a node.
                self._begin_round()
            self._round.opened(ordinal, parent=node, ledger=self._ledger)
        self._num_opened += 1

    def _hear_candidate(self, node: Node) -> None:
        if node.node_id in self._nodes:
            return
        self._nodes[node.node_id] = node
        if node.mode != "debug":
            self._round.plans.append(node)
        if node.status == "correct" and node.reward is not None:
            self._round.passed.append(node)
            self._best = node.reward if self._best is None else max(self._best, node.reward)

    def _keep_due(self, node: Node) -> None:
        """Enter a failed node into the round's repairs, or take it out."""
        place = bisect_left(self._due, node.node_id)
        is_entered = self._due[place : place + 1] == [node.node_id]
        if self._is_due(node) and not is_entered:
            self._due.insert(place, node.node_id)
        elif is_entered and not self._is_due(node):
            del self._due[place]

    def _is_due(self, node: Node) -> bool:
        return (
            node.status == "failed"
            and not node.closed
            and node.children_expected == 0
            and node.ordinal is not None
            and node.ordinal >= self._round.first_ordinal
            and _has_retries_left(node, retries=self._config.retries)
        )

    def _is_round_over(self) -> bool:
        return self._round.num_missing <= 0 and not self._due and self._root.in_flight == 0

    def _begin_round(self) -> None:
        over = self._round
        if over.passed:
            self._beam = diverse_select(over.passed, width=self._config.width)
        is_better = self._best is not None and (
            over.best_before is None or self._best > over.best_before
        )
        self._num_idle = 0 if is_better else self._num_idle + 1
        plans = sorted(over.plans, key=lambda node: node.node_id)
        known = [direction for node in plans if (direction := direction_of(node.strategy))]
        window = self._config.meltdown_window
        self._directions = [*self._directions, *known][-window:]
        members = sorted(self._beam, key=self._ucb_order)
        most = self._config.meltdown_directions
        if has_collapsed(self._directions, window=window, most=most):
            members = [self._root, *(member for member in members if member is not self._root)]
        self._due.clear()
        self._round = self._new_round(members)

    def _new_round(self, members: list[Node]) -> Round:
        return Round(
            members,
            num_plans=self._config.candidates,
            first_ordinal=self._num_opened,
            best=self._best,
        )

    def _ucb_order(self, node: Node) -> tuple[float, int]:
        """Order of members: the highest UCB first, then the older."""
        if node.origin is None or node.reward is None:  # ROOT, alone in its beam
            return 0.0, node.node_id
        weight = exploration_weight(self._root.visits, c_uct=self._config.c_ucb)
        return -uct_score(node.reward, visits=node.origin.visits, weight=weight), node.node_id


def _has_retries_left(node: Node, *, retries: int) -> bool:
    """Return whether fewer than so many of the nodes right above are failed, too."""
    above = node.parent
    for _ in range(retries):
        if above is None or above.status != "failed":
            return True
        above = above.parent
    return False


@SEARCHES.register("beam")
def make_beam(config: BeamConfig, *, rule: RewardRule, seed: int) -> TreeSearch:
    """Return a new beam search."""
    ledger = Ledger()
    policy = Beam(config, ledger=ledger)
    return TreeSearch(
        config.kind,
        budget=config,
        rule=rule,
        seed=seed,
        policy=policy,
        ledger=ledger,
        num_slots=policy.num_slots,
    )
