"""Results shared by the fleet: what is the same for several searches is found out once.

Whoever asks while the first is still at it waits for the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

Key = tuple[str, str]
"""(problem id, candidate id)."""


class SharedResults(Generic[T]):
    """What is known, or being found out, of every key."""

    def __init__(self, known: Mapping[Key, T] | None = None) -> None:
        """Start from results of an earlier part of the run."""
        self._known: dict[Key, T] = dict(known or {})
        self._under_way: dict[Key, asyncio.Future[T]] = {}

    def __contains__(self, key: Key) -> bool:
        """Whether asking for it starts nothing."""
        return key in self._known or key in self._under_way

    async def get(self, key: Key, find_out: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Return the result, and whether it was there already (or on its way).

        Raises:
            Whatever `find_out` raises; each waiter of the same key then finds out for itself.
        """
        while True:
            if key in self._known:
                return self._known[key], True
            under_way = self._under_way.get(key)
            if under_way is None:
                return await self._find_out(key, find_out), False
            await asyncio.wait([under_way])

    async def _find_out(self, key: Key, find_out: Callable[[], Awaitable[T]]) -> T:
        under_way: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._under_way[key] = under_way
        try:
            result = await find_out()
            self._known[key] = result
            return result
        finally:
            del self._under_way[key]
            under_way.cancel()
