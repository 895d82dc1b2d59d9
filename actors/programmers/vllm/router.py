"""Which server a request goes to: where its search's prefix is cached, unless that one is busy.

Least loaded first; a key stays with its server until that one has `slack` requests more than
another, since what a prompt's shared prefix saves is lost in a longer queue. Pure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

MAX_KEYS = 10_000
"""Searches that are remembered; the one unused for longest is forgotten first."""


class Router:
    """Remembers where each key went."""

    def __init__(self, *, slack: int) -> None:
        """Take the slack: how many requests a warm prefix may wait behind, >= 0."""
        self._slack = slack
        self._homes: OrderedDict[str, int] = OrderedDict()
        self.moved = 0
        """Requests sent elsewhere although their key's server was up."""

    def choose(self, key: str, loads: Mapping[int, int]) -> int:
        """Return the server for a request, and remember it.

        Args:
            key: of the request's search; empty where its prefix is nobody's.
            loads: requests under way, by server; at least one.
        """
        keys = dict.fromkeys(loads, 0)
        for home in self._homes.values():
            if home in keys:
                keys[home] += 1
        least = min(loads, key=lambda number: (loads[number], keys[number], number))
        if not key:
            return least
        home = self._homes.get(key, least)
        if home not in loads:
            home = least
        elif loads[home] > loads[least] + self._slack:
            home = least
            self.moved += 1
        self._homes[key] = home
        self._homes.move_to_end(key)
        if len(self._homes) > MAX_KEYS:
            self._homes.popitem(last=False)
        return home
