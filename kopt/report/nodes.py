"""The nodes of a search's tree, as its journal tells them: parents, visits, verdicts, rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kopt.data.fold import SearchState
from kopt.data.results import best_slot
from kopt.evaluation import EvalJson
from kopt.events import CandidateMade

ROOT = 0
"""Number of the node that holds no candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A candidate that the tree was told of."""

    node: int
    parent: int
    """ROOT for one that was written from the problem alone."""
    expansion: int
    index: int
    made: CandidateMade
    evaluation: EvalJson
    reward: float
    visits: int
    """Verdicts at it and below it: what the tree backs up (KernelPro Alg. 1)."""
    cached: bool
    """Its verdict was known before; nothing was run."""


def tree_nodes(search: SearchState) -> list[TreeNode]:
    """Return the nodes of one search, by number; a parent comes before its children."""
    told = sorted(
        (each.node, expansion.asked.parent_node, ordinal, index)
        for ordinal, expansion in search.expansions.items()
        for index, each in expansion.told.items()
    )
    known = {node for node, *_ in told}
    parents = {node: parent if parent in known else ROOT for node, parent, *_ in told}
    visits = _visits(parents)
    nodes = []
    for node, _, ordinal, index in told:
        expansion = search.expansions[ordinal]
        nodes.append(
            TreeNode(
                node=node,
                parent=parents[node],
                expansion=ordinal,
                index=index,
                made=expansion.candidates[index],
                evaluation=expansion.verdicts[index],
                reward=expansion.told[index].reward,
                visits=visits[node],
                cached=index in expansion.cached,
            )
        )
    return nodes


def best_node(search: SearchState) -> int | None:
    """Return the node of the best candidate by `rank`; None where none is correct, or not told."""
    slot = best_slot(search)
    if slot is None:
        return None
    told = slot[0].told.get(slot[1])
    return None if told is None else told.node


def way_to(node: int, nodes: Sequence[TreeNode]) -> list[int]:
    """Return the nodes from the one below ROOT to `node`, itself included; [] where it is none."""
    parents = {each.node: each.parent for each in nodes}
    way = []
    while node in parents:
        way.append(node)
        node = parents[node]
    return way[::-1]


def _visits(parents: Mapping[int, int]) -> dict[int, int]:
    """Count for each node itself and what is below it; children have higher numbers."""
    visits = dict.fromkeys(parents, 1)
    for node in sorted(parents, reverse=True):
        parent = parents[node]
        if parent in visits:
            visits[parent] += visits[node]
    return visits
