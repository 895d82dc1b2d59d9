"""Quiet: on a CPU work goes on beside work, and the device is timed alone."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from kopt.actors.quiet import Quiet


def test_work_goes_on_beside_work_and_timing_alone_in_the_order_asked() -> None:
    log: list[str] = []

    async def work(quiet: Quiet, name: str, done: asyncio.Event) -> None:
        async with AsyncExitStack() as stack:
            await (quiet.hold_alone(stack) if name.startswith("t") else quiet.hold(stack))
            log.append(f"+{name}")
            await done.wait()
            log.append(f"-{name}")

    async def scenario() -> None:
        quiet = Quiet("cpu")
        ends = [asyncio.Event() for _ in range(4)]
        names = ("w1", "w2", "t1", "w3")
        tasks = [asyncio.create_task(work(quiet, *each)) for each in zip(names, ends, strict=True)]
        for end in ends:
            await asyncio.sleep(0)
            end.set()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    asyncio.run(scenario())
    assert log[:2] == ["+w1", "+w2"]
    assert log.index("+t1") > max(log.index("-w1"), log.index("-w2"))
    assert log.index("+w3") > log.index("-t1")


def test_one_that_gives_up_its_place_leaves_it_to_the_next() -> None:
    held: list[str] = []

    async def scenario() -> None:
        quiet = Quiet("cpu")
        async with AsyncExitStack() as first:
            await quiet.hold(first)
            async with AsyncExitStack() as stack:
                waiting = asyncio.create_task(quiet.hold_alone(stack))
                await asyncio.sleep(0)
                assert not waiting.done()
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
            async with AsyncExitStack() as stack:
                await asyncio.wait_for(quiet.hold(stack), 5.0)
                held.append("work")
        async with AsyncExitStack() as stack:
            await asyncio.wait_for(quiet.hold_alone(stack), 5.0)
            held.append("timing")

    asyncio.run(scenario())
    assert held == ["work", "timing"]


def test_on_a_gpu_nobody_waits() -> None:
    async def scenario() -> int:
        quiet = Quiet("cuda")
        held = 0
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await asyncio.wait_for(quiet.hold_alone(stack), 5.0)
                held += 1
        return held

    assert asyncio.run(scenario()) == 2
