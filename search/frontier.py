"""The frontier: the best node to improve and the best one to repair, at hand in a tree of any size.

A node is open until its programmer has nothing more for it. Two heaps hold the open nodes; an
entry that no longer holds is dropped when it comes to the top, so that reading changes nothing. The
order of each heap is a function of the nodes alone, in whatever order they changed.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

from kopt.search.node import Node

_Repair = tuple[int, float, float, int, int]


def repair_key(node: Node) -> _Repair:
    """Return the order of repair, the most urgent first.

    Source: KernelPro App. E, "a composite priority (execution stage, error magnitude, speedup)":
    the further stage, then the smaller error, then the higher speed. What is wrong is never timed
    here, so the speed is that of the nearest correct node above, from which it was made. Nodes
    equal in all three take turns: that with fewer repairs, pending ones included, then the older.
    """
    error = node.progress.error_size
    return (
        -node.progress.rank,
        math.inf if error is None else error,
        math.inf if node.reward_above is None else -node.reward_above,
        node.children_expected,
        node.node_id,
    )


class Frontier:
    """The open nodes of one tree, told by `changed` whatever happens to any of them."""

    def __init__(self) -> None:
        self._nodes: dict[int, Node] = {}
        self._correct: list[tuple[float, int]] = []
        self._repairs: list[_Repair] = []
        self._under_repair: set[int] = set()

    def changed(self, node: Node) -> None:
        """Hear of a new node, or that slots were asked, told or given up at a known one."""
        is_new = node.parent is not None and node.node_id not in self._nodes
        if is_new:
            self._nodes[node.node_id] = node
            if node.status == "correct":
                heappush(self._correct, (-(node.reward or 0.0), node.node_id))
            if node.parent is not None and node.parent.status == "failed":
                self._offer_repair(node.parent)
        if node.status == "failed":
            self._offer_repair(node)
        self._drop_stale()

    def best(self) -> Node | None:
        """Return the open correct node of the highest reward; the older of equals."""
        return self._nodes[self._correct[0][1]] if self._correct else None

    def repair(self) -> Node | None:
        """Return the open failed node that is first in the order of repair and has none pending."""
        return self._nodes[self._repairs[0][-1]] if self._repairs else None

    def is_repairing(self) -> bool:
        """Return whether a slot is pending at any failed node."""
        return bool(self._under_repair)

    def _offer_repair(self, node: Node) -> None:
        if node.pending_here:
            self._under_repair.add(node.node_id)
            return
        self._under_repair.discard(node.node_id)
        if not node.closed:
            heappush(self._repairs, repair_key(node))

    def _drop_stale(self) -> None:
        while self._correct and self._nodes[self._correct[0][1]].closed:
            heappop(self._correct)
        while self._repairs and not self._holds(self._repairs[0]):
            heappop(self._repairs)

    def _holds(self, entry: _Repair) -> bool:
        *_, num_children, node_id = entry
        node = self._nodes[node_id]
        return not (node.closed or node.pending_here) and node.children_expected == num_children
