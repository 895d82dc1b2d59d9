"""Who of a lane's workers is lent next, and who of those that wait is served next.

Both are found without a walk over the lane: a cluster has thousands of workers, and as many calls
wait for them. A step costs the logarithm of their number at most.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kopt.actors.lane_homes import Homes

W = TypeVar("W")


class LowestFirst:
    """Numbers, of which the lowest is asked for."""

    __slots__ = ("_heap", "_heaped", "_members")

    def __init__(self) -> None:
        """Begin with none."""
        self._members: set[int] = set()
        self._heap: list[int] = []
        self._heaped: set[int] = set()
        """What the heap holds, each once; of it, what is no member is dropped when it comes up."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self._members)

    def add(self, number: int) -> None:
        """Take a number in; one that is there stays."""
        self._members.add(number)
        if number not in self._heaped:
            heapq.heappush(self._heap, number)
            self._heaped.add(number)

    def remove(self, number: int) -> None:
        """Take a number out.

        Raises:
            KeyError: it is not there.
        """
        self._members.remove(number)

    def lowest(self) -> int:
        """Return the lowest.

        Raises:
            IndexError: there is none.
        """
        while self._heap[0] not in self._members:
            self._heaped.remove(heapq.heappop(self._heap))
        return self._heap[0]


@dataclass(slots=True)
class _Alike:
    """Free workers that have as much to do, and all an actor, or none."""

    all: LowestFirst = field(default_factory=LowestFirst)
    by_key: dict[str | None, LowestFirst] = field(default_factory=dict)
    """By what they worked on last; only keys of which there is one."""


@dataclass(frozen=True, slots=True)
class _Place:
    alike: int
    key: str | None


class FreeWorkers:
    """Workers with a place for another call, by number."""

    def __init__(self, *, depth: int) -> None:
        """Begin with none.

        Args:
            depth: calls of one worker at a time, >= 1; who has as many is not free.
        """
        self._depth = depth
        self._groups = [_Alike() for _ in range(2 * depth)]
        self._places: dict[int, _Place] = {}

    def put(self, number: int, *, calls: int, has_actor: bool, last_key: str | None) -> None:
        """Say how it stands with a worker, in place of what was said of it before.

        Args:
            number: of the worker.
            calls: that it runs.
            has_actor: whether one need not be started for it.
            last_key: what it worked on last; None for nothing.
        """
        place = _Place(2 * calls + (not has_actor), last_key) if calls < self._depth else None
        known = self._places.get(number)
        if place == known:
            return
        if known is not None:
            del self._places[number]
            group = self._groups[known.alike]
            group.all.remove(number)
            same = group.by_key[known.key]
            same.remove(number)
            if not same:
                del group.by_key[known.key]
        if place is not None:
            self._places[number] = place
            group = self._groups[place.alike]
            group.all.add(number)
            group.by_key.setdefault(place.key, LowestFirst()).add(number)

    def choose(self, key: str) -> int | None:
        """Return the worker for a call; None where none is free.

        Preferred is the one with the least to do, then one that has an actor, then one whose
        caches are warm for `key`, then one that has none to lose, then the lowest number.
        """
        for group in self._groups:
            if group.all:
                warm = group.by_key.get(key) or group.by_key.get(None)
                return (warm or group.all).lowest()
        return None


class Waiting(Generic[W]):
    """Those that wait, each under a key, in the order they came.

    A worker takes those first whose keys it is at home for (lane_homes.py), then those whose keys
    are at home nowhere, rather than work that another is warm for; but it never stands idle.
    """

    def __init__(self, *, keys: int = 1) -> None:
        """Begin with nobody.

        Args:
            keys: that a worker is warm for at a time, >= 1.
        """
        self._homes = Homes(keys=keys)
        # Ordered dicts, not dicts: the first of a dict is found by a walk over what was removed.
        self._all: OrderedDict[int, tuple[str, W]] = OrderedDict()
        self._by_key: dict[str, OrderedDict[int, None]] = {}
        self._homeless: OrderedDict[str, None] = OrderedDict()
        """Of the keys that wait, those that are at home nowhere."""
        self._next_ticket = 0

    def __len__(self) -> int:
        """How many wait."""
        return len(self._all)

    def add(self, key: str, waiter: W) -> int:
        """Put somebody at the end; return the ticket with which to leave."""
        ticket = self._next_ticket
        self._next_ticket += 1
        self._all[ticket] = key, waiter
        self._by_key.setdefault(key, OrderedDict())[ticket] = None
        if not self._homes.holders(key):
            self._homeless[key] = None
        return ticket

    def take_up(self, worker: int, key: str) -> None:
        """Note that a worker gets ready for a key, unless another of its keys had to go for it."""
        if self._homes.has_room(worker):
            self.settle(worker, key)

    def settle(self, worker: int, key: str) -> None:
        """Note that a worker works on a key."""
        gone = self._homes.settle(worker, key)
        self._homeless.pop(key, None)
        self._note_homeless(gone)

    def unsettle(self, worker: int) -> None:
        """Note that a worker's caches are gone, with its actor."""
        self._note_homeless(self._homes.leave(worker))

    def homes(self, key: str) -> Set[int]:
        """Return the workers that are warm for a key, or are to be."""
        return self._homes.holders(key)

    def held_by(self, worker: int) -> tuple[int, int]:
        """Return how many keys a worker is at home for, and how many wait under them."""
        keys = self._homes.of(worker)
        return len(keys), sum(len(self._by_key.get(key, ())) for key in keys)

    def leave(self, ticket: int) -> bool:
        """Take somebody out who waits no longer; False where he was taken already."""
        if ticket not in self._all:
            return False
        self._remove(ticket)
        return True

    def take(self, *, worker: int | None) -> tuple[str, W] | None:
        """Take out who is next for a worker; None if nobody waits.

        Args:
            worker: its number; None takes whoever came first.
        """
        if not self._all:
            return None
        keys = () if worker is None else self._homes.of(worker)
        own = [next(iter(self._by_key[key])) for key in keys if key in self._by_key]
        if own:
            return self._remove(min(own))
        if worker is None or len(self._homeless) in (0, len(self._by_key)):
            return self._remove(next(iter(self._all)))
        return self._remove(next(iter(self._by_key[next(iter(self._homeless))])))

    def _note_homeless(self, keys: list[str]) -> None:
        self._homeless.update((key, None) for key in keys if key in self._by_key)

    def _remove(self, ticket: int) -> tuple[str, W]:
        key, waiter = self._all.pop(ticket)
        same = self._by_key[key]
        del same[ticket]
        if not same:
            del self._by_key[key]
            self._homeless.pop(key, None)
        return key, waiter
