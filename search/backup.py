"""Backup: the counts from a node up to ROOT.

Each told candidate is one visit and one reward at itself and at every ancestor, ROOT included
(KernelPro Alg. 1, line 20). Each pending slot is one in-flight visit at the node it was asked at
and at every ancestor (WU-UCT, Liu et al. 2020, Alg. 1-3), without a reward.

Sums must not depend on the order of tells, and floating-point addition does. So a reward enters
value_sum rounded to steps of 2**-32: such numbers add up exactly in float64, in any order, as
long as the sum stays below 2**21 (a tree of 200,000 nodes of mean reward 10).
"""

from __future__ import annotations

from kopt.search.node import Node

REWARD_STEPS = 2.0**32
"""Steps in one unit of reward."""


def summable(reward: float) -> float:
    """Return the reward rounded to a step of 2**-32, a change of at most 1.2e-10."""
    return round(reward * REWARD_STEPS) / REWARD_STEPS


def back_up(node: Node, *, reward: float) -> None:
    """Count a new node's visit and reward at it and at every ancestor."""
    value = summable(reward)
    correct = int(node.status == "correct")
    node.visits += 1
    node.value_sum += value
    ancestor = node.parent
    while ancestor is not None:
        ancestor.visits += 1
        ancestor.value_sum += value
        ancestor.num_correct_below += correct
        ancestor = ancestor.parent


def add_in_flight(node: Node, *, num_slots: int) -> None:
    """Count slots as pending at the node and every ancestor; a negative number takes them away."""
    node.pending_here += num_slots
    ancestor: Node | None = node
    while ancestor is not None:
        ancestor.in_flight += num_slots
        ancestor = ancestor.parent
