"""Render: a tree as text, a line a node, for a person to read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kopt.search.base import ROOT, NodeView


def render_tree(nodes: Iterable[NodeView], *, max_depth: int | None = None) -> str:
    """Return the tree as indented lines, children under their parent in order of ids.

    A line shows the id, mode and status, the node's own reward `r`, the mean reward `mean` and
    the visits `N` at and below it, then `+n` pending slots, `terminal` and `closed`.

    Args:
        nodes: views of one search, as `Search.nodes()` gives them.
        max_depth: deeper nodes are left out, their parent marked by `…`; None for all.
    """
    children: dict[int, list[NodeView]] = defaultdict(list)
    root: NodeView | None = None
    for view in nodes:
        if view.parent is None:
            root = view
        else:
            children[view.parent].append(view)
    if root is None:
        return ""
    lines: list[str] = []
    stack = [root]
    while stack:
        view = stack.pop()
        below = children.get(view.node, [])
        hidden = max_depth is not None and view.depth >= max_depth and bool(below)
        lines.append("  " * view.depth + _line(view) + (" …" if hidden else ""))
        if not hidden:
            stack.extend(reversed(below))
    return "\n".join(lines)


def _line(view: NodeView) -> str:
    head = "ROOT" if view.node == ROOT else f"{view.node} {view.mode} {view.status}"
    parts = [head]
    if view.reward is not None:
        parts.append(f"r={view.reward:+.3f}")
    if view.visits:
        parts.append(f"mean={view.value_sum / view.visits:+.3f}")
    parts.append(f"N={view.visits}")
    if view.in_flight:
        parts.append(f"+{view.in_flight}")
    if view.terminal:
        parts.append("terminal")
    if view.closed:
        parts.append("closed")
    return " ".join(parts)
