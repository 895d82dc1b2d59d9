"""Dead ends: which nodes are never walked through again.

Source: KernelPro §3.3.4. "When a failed node accumulates three or more repair children that all
fail, it is marked terminal and excluded from future selection", and the mark propagates upward.

Read here as a statement about the whole subtree: a failed node is terminal when it has at least
`terminal_repairs` children, nothing below it is correct (all children failed, and no repair of a
repair worked), and nothing below it is pending, since a pending answer may yet be correct. That
makes it a function of the counts alone, so it holds in whatever order answers come; once true it
stays true, since nothing is asked below a terminal node. Propagation: each change is followed up
to ROOT, so the answer that kills a branch marks every failed ancestor whose last hope it was.
Correct nodes and ROOT are never terminal: they can be optimised further, and seeded afresh.
"""

from __future__ import annotations

from kopt.search.node import Node


def is_terminal(node: Node, *, terminal_repairs: int) -> bool:
    """Return whether the node is a dead end.

    Args:
        node: any node.
        terminal_repairs: least number of failed children, >= 1.
    """
    return (
        node.status == "failed"
        and len(node.children) >= terminal_repairs
        and node.num_correct_below == 0
        and node.in_flight == 0
    )
