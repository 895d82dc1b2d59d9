"""Nodes that join: how many devices there are beyond the most that there ever were."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from kopt.cli.joining import joining_followed


def test_only_devices_beyond_the_most_ever_seen_have_joined() -> None:
    # Four; two leave; they come again with one more; another.
    counts: Iterator[int] = iter([4, 2, 4, 5, 5, 6])
    heard: list[int] = []

    def devices_now() -> int:
        return next(counts, 6)

    def on_more(more: int) -> None:
        heard.append(more)
        if sum(heard) == 2:
            last.set()

    async def scenario() -> None:
        async with joining_followed(devices_now, on_more, every_s=0.001):
            await asyncio.wait_for(last.wait(), 20.0)

    last = asyncio.Event()
    asyncio.run(scenario())
    assert heard == [1, 1]
