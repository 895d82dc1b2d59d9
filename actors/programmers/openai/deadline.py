"""A deadline that stands still while a request waits for its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager


class Deadline:
    """Seconds that may still be spent; used by one request after another, never by two at once."""

    def __init__(self, limit_s: float) -> None:
        """Start with all of it left."""
        self.limit_s = limit_s
        self._left_s = limit_s
        self._clock: asyncio.Timeout | None = None

    def copy(self) -> Deadline:
        """Return a deadline with as much left, for a request that runs beside others."""
        other = Deadline(self.limit_s)
        other._left_s = self.left_s()
        return other

    def left_s(self) -> float:
        """Return what is left, in seconds; below 0 once it is over."""
        when_s = None if self._clock is None else self._clock.when()
        if when_s is None:
            return self._left_s
        return when_s - asyncio.get_running_loop().time()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Count the time of the body.

        Raises:
            TimeoutError: it is over; the body is cancelled.
        """
        async with asyncio.timeout(self._left_s) as self._clock:
            try:
                yield
            finally:
                self._left_s = self.left_s()
                self._clock = None

    @asynccontextmanager
    async def paused_until(self, turn: AbstractAsyncContextManager[None]) -> AsyncIterator[None]:
        """Hold a turn; waiting for it costs nothing of the deadline."""
        assert self._clock is not None, "only while running"
        self._left_s = self.left_s()
        self._clock.reschedule(None)
        async with turn:
            self._clock.reschedule(asyncio.get_running_loop().time() + self._left_s)
            yield
