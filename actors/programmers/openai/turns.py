"""Turns: how many requests are under way at once, and how many are begun in a minute."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MINUTE_S = 60.0


class Turns:
    """Gives turns in the order they are asked for. Time is the running loop's."""

    def __init__(self, *, max_concurrency: int, requests_per_minute: int | None) -> None:
        """Take the limits.

        Args:
            max_concurrency: turns at once, >= 1.
            requests_per_minute: turns begun in any sixty seconds at most; None for no limit.
        """
        self._places = asyncio.Semaphore(max_concurrency)
        self._rate = asyncio.Lock()
        self._begun_s: deque[float] | None = None
        if requests_per_minute is not None:
            self._begun_s = deque(maxlen=requests_per_minute)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it."""
        async with self._places:
            await self._wait_for_the_rate()
            yield

    async def _wait_for_the_rate(self) -> None:
        """A place is held meanwhile: no request could use it before this one's minute is over."""
        if self._begun_s is None:
            return
        now_s = asyncio.get_running_loop().time
        async with self._rate:
            if len(self._begun_s) == self._begun_s.maxlen:
                wait_s = self._begun_s[0] + MINUTE_S - now_s()
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
            self._begun_s.append(now_s())
