"""Nodes that join a cluster while a fleet runs: their devices are used from then on.

Those that leave need no word: the lanes find out by their calls (kopt.actors.lanes).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

LOOK_EVERY_S = 10.0


@asynccontextmanager
async def joining_followed(
    devices_now: Callable[[], int],
    on_more: Callable[[int], None],
    *,
    every_s: float = LOOK_EVERY_S,
) -> AsyncIterator[None]:
    """Look for more devices now and then within the body.

    Args:
        devices_now: tells how many there are; may take a while, and is called in a thread.
        on_more: called with how many there are beyond the most that there ever were.
        every_s: between two looks, > 0.
    """
    following = asyncio.create_task(_follow(devices_now, on_more, every_s=every_s))
    try:
        yield
    finally:
        following.cancel()
        await asyncio.wait([following])


async def _follow(
    devices_now: Callable[[], int], on_more: Callable[[int], None], *, every_s: float
) -> None:
    most = await asyncio.to_thread(devices_now)
    while True:
        await asyncio.sleep(every_s)
        now = await asyncio.to_thread(devices_now)
        if now > most:
            on_more(now - most)
            most = now
