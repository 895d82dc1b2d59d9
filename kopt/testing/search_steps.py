"""Moves on a search for tests: grow it, finish an expansion, walk at random, check the sums."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Literal, NamedTuple

from kopt.expansion import Expansion
from kopt.search import ROOT, Search
from kopt.testing.search_model import tell_slot


class Step(NamedTuple):
    """One thing that was done to a search."""

    kind: Literal["ask", "tell", "cancel", "exhaust"]
    expansion: Expansion
    slot: int
    """Index of the slot told; 0 for the other kinds."""


def tell_rest(search: Search, expansion: Expansion, *, start: int = 1) -> None:
    """Tell every slot of an expansion from `start` on."""
    for index in range(start, expansion.num_candidates):
        tell_slot(search, expansion, index=index)


def tell_untold(search: Search, expansion: Expansion) -> None:
    """Tell the slots of an expansion that made no node so far; none of them may be cancelled."""
    made = {(view.ordinal, view.index) for view in search.nodes()}
    for index in range(expansion.num_candidates):
        if (expansion.ordinal, index) not in made:
            tell_slot(search, expansion, index=index)


def grow(search: Search, *, num_told: int) -> None:
    """Grow a search one expansion at a time until so many candidates are told, or it ends."""
    while search.told() < num_told:
        expansions = search.ask()
        if not expansions:
            return
        tell_rest(search, expansions[0], start=0)


def random_steps(
    search: Search, *, seed: int, num_steps: int, closes_nodes: bool = False
) -> Iterator[Step]:
    """Do random things to a search until it ends, and yield each one done.

    Half of the steps try to ask; the others tell a random pending slot, or now and then cancel
    its whole expansion.

    Args:
        search: a new search.
        seed: of the random choices.
        num_steps: at most so many tries.
        closes_nodes: let some of the cancels close the node.
    """
    rng = Random(seed)
    pending: list[tuple[Expansion, int]] = []
    for _ in range(num_steps):
        if search.finished() is not None:
            return
        if rng.random() < 0.5:
            for expansion in search.ask():
                pending += [(expansion, index) for index in range(expansion.num_candidates)]
                yield Step("ask", expansion, 0)
        elif pending:
            expansion, index = rng.choice(pending)
            if rng.random() < 0.9:
                pending.remove((expansion, index))
                tell_slot(search, expansion, index=index)
                yield Step("tell", expansion, index)
            else:
                pending = [slot for slot in pending if slot[0] != expansion]
                exhausted = closes_nodes and rng.random() < 0.5
                search.cancel(expansion.ordinal, exhausted=exhausted)
                yield Step("exhaust" if exhausted else "cancel", expansion, 0)


def assert_counts_add_up(search: Search) -> None:
    """Assert that every count is the sum that it says it is.

    Visits and value are a node's own and its children's; all told candidates and pending slots
    are at or below ROOT; a parent has at least its children's slots in flight.
    """
    nodes = search.nodes()
    visits = {view.node: 0 if view.node == ROOT else 1 for view in nodes}
    in_flight_below = dict.fromkeys(visits, 0)
    for view in nodes[1:]:
        assert view.parent is not None
        visits[view.parent] += view.visits
        in_flight_below[view.parent] += view.in_flight
    assert {view.node: view.visits for view in nodes} == visits
    assert all(view.in_flight >= in_flight_below[view.node] for view in nodes)
    own = {view.node: view.value_sum for view in nodes}
    for view in nodes[1:]:
        assert view.parent is not None
        own[view.parent] -= view.value_sum
    for view in nodes:
        assert abs(own[view.node] - (view.reward or 0.0)) < 1e-6
    assert nodes[0].visits == search.told() == len(nodes) - 1
    assert nodes[0].in_flight == search.pending()
