"""Telling any search: one of another package may be older than the strategy of `tell`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kopt.search.base import Search, Told
from kopt.verdict import Verdict


def tell_candidate(
    search: Search, ordinal: int, index: int, *, candidate: str, verdict: Verdict, strategy: str
) -> Told:
    """Tell one slot (Search.tell), its strategy too if the search takes it.

    Raises:
        ValueError: as Search.tell.
    """
    if _takes_strategy(getattr(search.tell, "__func__", search.tell)):
        return search.tell(ordinal, index, candidate=candidate, verdict=verdict, strategy=strategy)
    return search.tell(ordinal, index, candidate=candidate, verdict=verdict)


@lru_cache(maxsize=64)
def _takes_strategy(tell: Callable[..., Any]) -> bool:
    """Whether a policy's `tell` has it; found out once for each policy, not for each candidate."""
    parameters = inspect.signature(tell).parameters.values()
    return any(p.name == "strategy" or p.kind is p.VAR_KEYWORD for p in parameters)
