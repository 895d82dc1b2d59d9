"""Telling any search: one of another package may be older than the strategy of `tell`."""

from __future__ import annotations

import inspect

from kopt.search.base import Search, Told
from kopt.verdict import Verdict


def tell_candidate(
    search: Search, ordinal: int, index: int, *, candidate: str, verdict: Verdict, strategy: str
) -> Told:
    """Tell one slot (Search.tell), its strategy too if the search takes it.

    Raises:
        ValueError: as Search.tell.
    """
    parameters = inspect.signature(search.tell).parameters.values()
    if any(p.name == "strategy" or p.kind is p.VAR_KEYWORD for p in parameters):
        return search.tell(ordinal, index, candidate=candidate, verdict=verdict, strategy=strategy)
    return search.tell(ordinal, index, candidate=candidate, verdict=verdict)
