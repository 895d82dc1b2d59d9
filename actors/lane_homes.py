"""Where the work of a key is at home: the workers whose caches are warm for it.

A device that takes a problem up opens a session, runs its reference and compiles it: seconds, which
a second device would spend again. Each worker is at home for the last few keys that it worked on or
took up, as many as it keeps ready.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Set


class Homes:
    """The keys of each worker, by number."""

    def __init__(self, *, keys: int) -> None:
        """Begin with none.

        Args:
            keys: that a worker keeps ready at a time, >= 1.
        """
        self._most = keys
        self._keys: dict[int, OrderedDict[str, None]] = {}
        self._holders: dict[str, set[int]] = {}

    def of(self, worker: int) -> Collection[str]:
        """Return a worker's keys, the one that it was busy with longest ago first."""
        return self._keys.get(worker, ())

    def holders(self, key: str) -> Set[int]:
        """Return the workers that a key is at home with."""
        return self._holders.get(key, frozenset())

    def has_room(self, worker: int) -> bool:
        """Return whether a worker has fewer keys than it keeps ready."""
        return len(self.of(worker)) < self._most

    def settle(self, worker: int, key: str) -> list[str]:
        """Note that a worker is busy with a key; return the keys that are at home nowhere now."""
        keys = self._keys.setdefault(worker, OrderedDict())
        keys[key] = None
        keys.move_to_end(key)
        self._holders.setdefault(key, set()).add(worker)
        surplus = [keys.popitem(last=False)[0] for _ in range(len(keys) - self._most)]
        return self._without(worker, surplus)

    def leave(self, worker: int) -> list[str]:
        """Forget a worker, whose actor has ended; return the keys that are at home nowhere now."""
        return self._without(worker, self._keys.pop(worker, ()))

    def _without(self, worker: int, keys: Iterable[str]) -> list[str]:
        gone = []
        for key in keys:
            self._holders[key].discard(worker)
            if not self._holders[key]:
                del self._holders[key]
                gone.append(key)
        return gone
