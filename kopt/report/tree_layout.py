"""Where nodes of a tree stand in its picture: leaves side by side, parents above their middle.

Many leaves of one parent are stacked in short columns, so that a wide search stays readable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kopt.report.nodes import ROOT

Place = tuple[float, float]
"""Across, in columns; and depth, 0 for ROOT."""
FEW = 12
"""Leaves of one parent that stand side by side."""
MOST = 12
"""Leaves of a column."""
STACK = 0.7
"""How far down a column reaches, of the way to the next depth."""


def places(parents: Mapping[int, int]) -> dict[int, Place]:
    """Return the place of ROOT and of every node; no two nodes have the same.

    Args:
        parents: node to its parent, ROOT for the first ones; a child's number is higher.
    """
    children: dict[int, list[int]] = {ROOT: []}
    for node in sorted(parents):
        children[node] = []
        children[parents[node]].append(node)
    place: dict[int, Place] = {}
    column = 0
    stack: list[tuple[int, int, bool]] = [(ROOT, 0, False)]
    """Node, its depth, and whether what is below it has its places."""
    while stack:
        node, depth, is_done = stack.pop()
        below = children[node]
        if is_done:
            ends = [place[each][0] for each in below]
            place[node] = (min(ends) + max(ends)) / 2.0, float(depth)
            continue
        if not below:
            place[node] = float(column), float(depth)
            column += 1
            continue
        stack.append((node, depth, True))
        leaves = [each for each in below if not children[each]]
        inner = [each for each in below if children[each]]
        if len(leaves) <= FEW:
            inner = below
        else:
            stacked = _stacked(leaves, column=column, depth=depth + 1)
            column = 1 + int(max(across for across, _ in stacked.values()))
            place |= stacked
        stack.extend((each, depth + 1, False) for each in reversed(inner))
    return place


def _stacked(leaves: Sequence[int], *, column: int, depth: int) -> dict[int, Place]:
    """Place leaves in columns as high as there are columns, or MOST."""
    high = min(MOST, max(2, round(len(leaves) ** 0.5)))
    return {
        leaf: (float(column + at // high), depth + STACK * (at % high) / high)
        for at, leaf in enumerate(leaves)
    }
