"""Selection: UCT of the children there are, and of the virtual child that an expansion would add.

UCT(c) = mean_c + c_uct * sqrt(ln N' / N'_c)                      (KernelPro §3.3.1)
virtual child = mean_parent + c_uct * sqrt(ln N' * (k+1) / N')    (§3.3.2, as DESIGN §4 gives it:
    the parent's mean as prior, a fair share N'/(k+1) of its visits)

N' is the parent's visits, N'_c the child's, k the parent's number of children. The primes are
WU-UCT's: pending slots count as visits in both terms, and leave the means alone. Both scores are
mean + weight * sqrt(1 / visits of the child): equal shares of visits give equal floats, so that a
tie in the formula is a tie in the machine.
"""

from __future__ import annotations

from math import log, sqrt

from kopt.search.node import Node


def exploration_weight(parent_visits: int, *, c_uct: float) -> float:
    """Return c_uct * sqrt(ln N'), the part of the exploration term that siblings share.

    Args:
        parent_visits: N' of the parent, >= 1.
        c_uct: weight of exploration, >= 0. 0 is greedy.
    """
    return c_uct * sqrt(log(parent_visits))


def uct_score(mean: float, *, visits: int, weight: float) -> float:
    """Return the UCT of a child.

    Args:
        mean: its mean reward.
        visits: N'_c >= 1, pending ones included.
        weight: exploration_weight of its parent.
    """
    return mean + weight * sqrt(1.0 / visits)


def virtual_child_score(
    mean: float, *, num_children: int, parent_visits: int, weight: float
) -> float:
    """Return the UCT of the child that an expansion would add.

    Args:
        mean: the parent's mean reward, the prior of the new child.
        num_children: k, pending ones included.
        parent_visits: N' of the parent, >= 1.
        weight: exploration_weight of the parent.
    """
    return mean + weight * sqrt((num_children + 1) / parent_visits)


def best_serving_child(node: Node, *, weight: float) -> tuple[Node, float] | None:
    """Return the child of highest UCT among those that serve, with its score; None without one.

    The lowest id wins a tie: children are kept in order of ids, and a later one must be better.
    """
    best: Node | None = None
    best_score = 0.0
    for child in node.children:
        if child.serves:
            # uct_score, written out: this line runs once for each child of each node walked.
            score = child.value_sum / child.visits + weight * sqrt(
                1.0 / (child.visits + child.in_flight)
            )
            if best is None or score > best_score:
                best, best_score = child, score
    return None if best is None else (best, best_score)
