"""Turns of a pool: a request waits for a server as well, and its deadline stands still meanwhile.

A server of a large model takes minutes to come back; what it was writing is asked for again then,
with as much of the deadline left as there was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from kopt.actors.programmers.openai.turns import Turns
from kopt.actors.programmers.vllm.pool import Pool
from kopt.actors.quiet import Quiet


class PoolTurns(Turns):
    """Gives a turn once there is a server, and on a CPU no candidate is being timed."""

    def __init__(
        self, pool: Pool, quiet: Quiet, *, max_concurrency: int, requests_per_minute: int | None
    ) -> None:
        """Take the pool, what keeps the cores quiet, and the limits."""
        super().__init__(max_concurrency=max_concurrency, requests_per_minute=requests_per_minute)
        self._pool = pool
        self._quiet = quiet

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it.

        Raises:
            WorkerLost: there is no server, and there will be none.
        """
        async with super().take(), AsyncExitStack() as stack:
            await self._pool.ready()
            await self._quiet.hold(stack)
            yield
