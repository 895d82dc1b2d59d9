"""Pure tree search: no clock, no RNG of its own, no actor, no I/O."""

from kopt.search import policies
from kopt.search.base import ROOT, FinishReason, NodeStatus, NodeView, Search, Told
from kopt.search.searches import SEARCHES, create_search, restore_search

__all__ = [
    "ROOT",
    "SEARCHES",
    "FinishReason",
    "NodeStatus",
    "NodeView",
    "Search",
    "Told",
    "create_search",
    "policies",
    "restore_search",
]
