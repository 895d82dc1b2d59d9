"""Trees and details of a report: which candidates are told in full, and in which blocks they lie.

The way to the best candidate of every search is always told in full; of the others as many as asked
for, search by search. What is left out keeps its place in the tree, its verdict and its reward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kopt.data.fold import SearchState
from kopt.report.details import details
from kopt.report.nodes import ROOT, TreeNode, best_node, tree_nodes, way_to
from kopt.report.packing import Texts, packed
from kopt.report.reading import ReportedRun
from kopt.report.tree_layout import places

BLOCK = 120
"""Candidates of one block: what is decoded when one of them is opened."""
NO_BLOCK = -1
MAX_STRATEGY = 120
"""Characters of a strategy note beside a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What the page holds of trees."""

    trees: list[dict[str, Any]]
    """One a search, of columns, in the order of runs and searches."""
    blocks: list[str]
    """Packed: `texts` and `nodes`, number of node to its record."""
    candidates: int
    """In the trees."""
    told: int
    """Of them, in full."""


def contents(runs: Sequence[ReportedRun], *, most: int) -> Contents:
    """Return the trees of runs and the details of candidates.

    Args:
        runs: in the order they are shown.
        most: candidates that are told in full; the ways to the best ones come on top.
    """
    trees: list[dict[str, Any]] = []
    blocks: list[str] = []
    candidates = told = 0
    for run in runs:
        for name, search in run.state.searches.items():
            nodes = tree_nodes(search)
            best = best_node(search)
            way = set() if best is None else set(way_to(best, nodes))
            chosen = [each for place, each in enumerate(nodes) if told + place < most]
            chosen += [each for each in nodes[len(chosen) :] if each.node in way]
            block_of: dict[int, int] = {}
            for part in _parts(chosen, BLOCK):
                block_of.update(dict.fromkeys((each.node for each in part), len(blocks)))
                blocks.append(packed(_block(part, nodes, search=search, run=run)))
            trees.append(
                _tree(nodes, best=best, block_of=block_of)
                | {"run": run.label, "search": name, "ended": search.ended is not None}
            )
            candidates += len(nodes)
            told += len(chosen)
    return Contents(trees=trees, blocks=blocks, candidates=candidates, told=told)


def _block(
    part: Iterable[TreeNode], nodes: Iterable[TreeNode], *, search: SearchState, run: ReportedRun
) -> dict[str, Any]:
    texts = Texts()
    by_number = {each.node: each for each in nodes}
    records = {
        str(each.node): details(
            each,
            parent=by_number.get(each.parent),
            search=search,
            artefacts=run.artefacts,
            texts=texts,
        )
        for each in part
    }
    return {"texts": texts.kept, "nodes": records}


def _tree(
    nodes: Sequence[TreeNode], *, best: int | None, block_of: dict[int, int]
) -> dict[str, Any]:
    place = places({each.node: each.parent for each in nodes})
    return {
        "best": best,
        "root": place[ROOT],
        "node": [each.node for each in nodes],
        "parent": [each.parent for each in nodes],
        "x": [place[each.node][0] for each in nodes],
        "y": [place[each.node][1] for each in nodes],
        "kind": [each.evaluation["kind"] for each in nodes],
        "speedup": [each.evaluation["speedup"] for each in nodes],
        "reward": [each.reward for each in nodes],
        "visits": [each.visits for each in nodes],
        "strategy": [" ".join(each.made.strategy.split())[:MAX_STRATEGY] for each in nodes],
        "block": [block_of.get(each.node, NO_BLOCK) for each in nodes],
    }


def _parts(nodes: Sequence[TreeNode], size: int) -> Iterator[Sequence[TreeNode]]:
    for start in range(0, len(nodes), size):
        yield nodes[start : start + size]
