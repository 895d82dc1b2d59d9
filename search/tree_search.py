"""TreeSearch: the Search protocol over a tree of nodes, for any policy that names the next node.

It keeps what all policies share: the slots and their budget, node ids, counts, the best node and
snapshots. A policy only chooses. Third parties may use it, or write a Search of their own.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Protocol

from kopt.expansion import Expansion
from kopt.identity import derived_seed
from kopt.reward import RewardRule, reward
from kopt.search.backup import add_in_flight, back_up
from kopt.search.base import FinishReason, NodeStatus, NodeView, Told
from kopt.search.config import SearchSection
from kopt.search.ledger import Ledger
from kopt.search.node import Node, virtual_root
from kopt.search.progress import progress_of
from kopt.search.snapshot import Snapshot, ToldSlot, snapshot_from_json, snapshot_to_json
from kopt.verdict import Correct, Verdict

STRATEGY_CHARS = 400
"""Most that the tree keeps of a strategy's text: a model may write a page."""

_by_id = attrgetter("node_id")


class Policy(Protocol):
    """What a policy answers for.

    It may keep fields of the nodes, and indexes that are functions of the facts (what was asked
    where, what was told, cancelled, closed): a restored tree goes through the same changes in the
    order in which its slots were asked, with the closed nodes last.
    """

    def changed(self, node: Node) -> None:
        """Hear that the counts of this node and of all its ancestors may have changed."""
        ...

    def choose(self, root: Node) -> Node | None:
        """Return the node to expand next, or None to wait for pending answers.

        Depends on the tree alone and changes nothing. With nothing pending, None means that
        nothing can be expanded any more.
        """
        ...

    def ending(self, root: Node) -> FinishReason:
        """Return why nothing can be expanded any more."""
        ...


class TreeSearch:
    """A Search; see kopt.search.base for its contract."""

    def __init__(
        self,
        kind: str,
        *,
        budget: SearchSection,
        rule: RewardRule,
        seed: int,
        policy: Policy,
        ledger: Ledger | None = None,
        num_slots: Callable[[Node], int] | None = None,
    ) -> None:
        """Make an empty tree.

        Args:
            kind: the policy's name; a snapshot of another is refused.
            budget: how many candidates, and how many in one expansion.
            rule: how a verdict becomes a reward.
            seed: every expansion's seed derives from it.
            policy: chooses the node to expand.
            ledger: a new one, for a policy that reads it; None to make one.
            num_slots: called with each node that was chosen, says how many candidates to ask
                there, >= 1; None for the section's number.
        """
        self._kind = kind
        self._budget = budget.budget
        self._num_candidates = budget.candidates
        self._rule = rule
        self._seed = seed
        self._policy = policy
        self._ledger = ledger or Ledger()
        self._num_slots = num_slots or (lambda _: self._num_candidates)
        self._root = virtual_root()
        self._nodes: dict[int, Node] = {self._root.node_id: self._root}
        self._best: Node | None = None
        policy.changed(self._root)

    def ask(self, k: int = 1) -> list[Expansion]:
        """Return up to k expansions (Search.ask)."""
        if k < 1:
            raise ValueError(f"k must be >= 1, got {k}")
        expansions: list[Expansion] = []
        while len(expansions) < k:
            room = self._budget - self._ledger.num_told - self._ledger.num_pending
            node = self._policy.choose(self._root) if room > 0 else None
            if node is None:
                break
            expansions.append(self._open(node, num_slots=min(self._num_slots(node), room)))
        return expansions

    def tell(
        self, ordinal: int, index: int, *, candidate: str, verdict: Verdict, strategy: str = ""
    ) -> Told:
        """Add a told candidate as a node (Search.tell)."""
        self._ledger.require_pending(ordinal, index=index)
        value = reward(verdict, self._rule)
        if not math.isfinite(value):
            raise ValueError(f"the reward of a verdict must be finite, got {value}: {verdict}")
        status: NodeStatus = "correct" if isinstance(verdict, Correct) else "failed"
        told = ToldSlot(
            candidate=candidate,
            status=status,
            reward=value,
            strategy=strategy[:STRATEGY_CHARS],
            progress=progress_of(verdict),
        )
        return Told(node=self._attach(ordinal, index=index, told=told), reward=value)

    def cancel(self, ordinal: int, *, exhausted: bool = False) -> int:
        """Give up the pending slots of an expansion (Search.cancel)."""
        slots = self._ledger.pending_slots(ordinal)
        if not slots and not exhausted:
            raise ValueError(
                f"expansion {ordinal} has no pending slot to cancel; "
                "only exhausted=True may be said of it"
            )
        self._give_up(ordinal, slots=slots)
        if exhausted:
            self._close(self._ledger.expansion(ordinal).parent_node)
        return len(slots)

    def pending(self) -> int:
        """Return how many slots are pending (Search.pending)."""
        return self._ledger.num_pending

    def told(self) -> int:
        """Return how many candidates were told (Search.told)."""
        return self._ledger.num_told

    def finished(self) -> FinishReason | None:
        """Return why the search is over, or None (Search.finished)."""
        if self._ledger.num_pending:
            return None
        if self._ledger.num_told >= self._budget:
            return "budget"
        if self._policy.choose(self._root) is None:
            return self._policy.ending(self._root)
        return None

    def best(self) -> int | None:
        """Return the node of the best correct candidate (Search.best)."""
        return None if self._best is None else self._best.node_id

    def node(self, node: int) -> NodeView:
        """Return one node (Search.node)."""
        return self._find(node).view()

    def nodes(self) -> list[NodeView]:
        """Return every node in order of ids (Search.nodes)."""
        return [self._nodes[node_id].view() for node_id in sorted(self._nodes)]

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain JSON values (Search.snapshot)."""
        return snapshot_to_json(
            Snapshot.of(kind=self._kind, seed=self._seed, ledger=self._ledger, nodes=self._nodes)
        )

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Take over a snapshot (Search.restore): the tree is a fold over its expansions."""
        if self._ledger.expansions:
            raise ValueError("only a new search can restore a snapshot; this one has asked before")
        state = snapshot_from_json(snapshot, kind=self._kind, seed=self._seed)
        for expansion in state.expansions:
            parent = self._find(expansion.parent_node)
            ordinal = self._open(parent, num_slots=len(expansion.slots)).ordinal
            for index, slot in enumerate(expansion.slots):
                if isinstance(slot, ToldSlot):
                    self._attach(ordinal, index=index, told=slot)
                elif slot == "cancelled":
                    self._give_up(ordinal, slots=[index])
        for node_id in state.closed:
            self._close(node_id)

    def _find(self, node_id: int) -> Node:
        try:
            return self._nodes[node_id]
        except KeyError:
            raise ValueError(f"there is no node {node_id} in this search") from None

    def _open(self, node: Node, *, num_slots: int) -> Expansion:
        ordinal = self._ledger.open(node.node_id, num_slots=num_slots)
        first_child = node.asked
        node.asked += num_slots
        add_in_flight(node, num_slots=num_slots)
        self._policy.changed(node)
        return Expansion(
            ordinal=ordinal,
            parent_node=node.node_id,
            parent=node.candidate,
            mode=node.expansion_mode,
            num_candidates=num_slots,
            first_child=first_child,
            seed=derived_seed(self._seed, node.node_id, first_child),
        )

    def _attach(self, ordinal: int, *, index: int, told: ToldSlot) -> int:
        self._ledger.settle(ordinal, index=index, state="told")
        asked = self._ledger.expansion(ordinal)
        parent = self._nodes[asked.parent_node]
        child = Node(
            node_id=1 + asked.first_slot + index,
            parent=parent,
            candidate=told.candidate,
            mode=parent.expansion_mode,
            status=told.status,
            reward=told.reward,
            ordinal=ordinal,
            index=index,
            depth=parent.depth + 1,
            strategy=told.strategy,
            progress=told.progress,
            reward_above=parent.reward if parent.status == "correct" else parent.reward_above,
        )
        child.origin = parent.origin or child
        self._nodes[child.node_id] = child
        insort(parent.children, child, key=_by_id)
        add_in_flight(parent, num_slots=-1)
        back_up(child, reward=told.reward)
        self._policy.changed(child)
        self._keep_best(child)
        return child.node_id

    def _give_up(self, ordinal: int, *, slots: list[int]) -> None:
        for index in slots:
            self._ledger.settle(ordinal, index=index, state="cancelled")
        node = self._nodes[self._ledger.expansion(ordinal).parent_node]
        add_in_flight(node, num_slots=-len(slots))
        self._policy.changed(node)

    def _close(self, node_id: int) -> None:
        node = self._find(node_id)
        node.closed = True
        self._policy.changed(node)

    def _keep_best(self, node: Node) -> None:
        if node.status == "correct" and (self._best is None or _rank(node) > _rank(self._best)):
            self._best = node


def _rank(node: Node) -> tuple[float, int]:
    """Order of best: by reward, then the lower id."""
    return (-math.inf if node.reward is None else node.reward, -node.node_id)
