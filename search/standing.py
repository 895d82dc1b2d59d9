"""Standing: which subtrees may still be asked, and which can take an ask now.

Answers are slow, so a part of the tree may have to wait for them while the rest goes on. Three
answers for each node, each a function of its own counts and its children's standing:

* terminal: a dead end (terminal.py).
* live: not terminal, and something may be asked at or below it, now or later. A closed node
  without live children and without pending slots below it is dead.
* serves: live, and an ask that walks in now finds a node to expand: a child serves, or the node
  itself may be expanded. It may where it is not closed and its widening gate is open; also with
  the gate shut where nothing is pending below and no child is live, since then no answer would
  ever open the gate.

A live node that does not serve waits for pending answers below it: selection leaves it out and
takes the best of its siblings that serve. If ROOT itself waits, so does the whole search. With
nothing pending every live node serves (by induction from the leaves: a live leaf is not closed
and its gate, 0 < C_pw * N^alpha, is open), so a search with one expansion in flight at a time is
the textbook's sequential algorithm.
"""

from __future__ import annotations

from kopt.search.node import Node
from kopt.search.terminal import is_terminal
from kopt.search.widening import Widening


def may_expand(node: Node, *, widening: Widening) -> bool:
    """Return whether an expansion may be asked at this very node now."""
    if node.closed:
        return False
    stuck = node.in_flight == 0 and node.num_live == 0
    return stuck or widening.is_open(node)


def refresh(node: Node, *, widening: Widening, terminal_repairs: int) -> None:
    """Bring the standing up to date from a changed node up to ROOT.

    To be called after every change, with the lowest node whose counts, children or `closed`
    changed: everything above it is brought up to date, nothing beside it can have changed.
    """
    current: Node | None = node
    while current is not None:
        was_live, served = current.live, current.serves
        current.terminal = is_terminal(current, terminal_repairs=terminal_repairs)
        current.live = not current.terminal and (
            not current.closed or current.in_flight > 0 or current.num_live > 0
        )
        current.serves = current.live and (
            current.num_serving > 0 or may_expand(current, widening=widening)
        )
        parent = current.parent
        if parent is not None:
            parent.num_live += current.live - was_live
            parent.num_serving += current.serves - served
        current = parent
