"""DiverseSelect: which candidates of a round go on as the next beam.

Source: KernelOPT §4.3, Eq. 3. Candidates are parted by chain origin. Phase 1 takes the best of each
chain, so that none is crowded out; phase 2 fills the places left by reward alone. A chain is, here,
all that descends from one fresh seed (Node.origin): the paper's "beam width 4 chains" outlive a
round, as candidates grouped by the beam's member alone would not.
"""

from __future__ import annotations

from collections.abc import Iterable

from kopt.search.node import Node


def diverse_select(candidates: Iterable[Node], *, width: int) -> list[Node]:
    """Return at most `width` candidates: the best of each chain, then the best of the rest.

    The same candidate written twice counts once, as its older node. More chains than places: those
    with the best candidates have them.

    Args:
        candidates: correct nodes, in any order.
        width: places in the beam (B), >= 1.

    Returns:
        The best of each chain by reward, then the others by reward; the older of equals first.
    """
    ranked: dict[str | None, Node] = {}
    for node in sorted(candidates, key=_rank):
        ranked.setdefault(node.candidate, node)
    best_of_chain: dict[int, Node] = {}
    for node in ranked.values():
        best_of_chain.setdefault(_chain(node), node)
    heads = {node.node_id for node in best_of_chain.values()}
    others = [node for node in ranked.values() if node.node_id not in heads]
    return [*best_of_chain.values(), *others][:width]


def _rank(node: Node) -> tuple[float, int]:
    return (-(node.reward or 0.0), node.node_id)


def _chain(node: Node) -> int:
    return node.node_id if node.origin is None else node.origin.node_id
