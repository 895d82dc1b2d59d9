"""One module timed by itself, as a protocol made to compare with published figures times it."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from kopt.actors.devices.base import Pace
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.overhead import Block
from kopt.timing import TimingProtocol
from kopt.timing_protocol import ESTIMATE_CALLS, call_plan

PACES: dict[TimingProtocol, Pace] = {
    "abba": "ahead",
    "do_bench": "queued",
    "kernelbench": "waiting",
}
CUDA_CLEAR_US = 70.0
"""Overwriting 256 MiB takes about that on the GPUs whose figures are published (profiling notes
§D.2); Triton's estimate of a call has it in it."""


def measure(
    watch: Stopwatch, *, protocol: TimingProtocol, after_block: Callable[[], None] | None = None
) -> list[Block]:
    """Time a module that is warm; return the blocks that count, each call in them told apart.

    Args:
        watch: of the module.
        protocol: any but `abba`.
        after_block: called after each block that counts.

    Raises:
        ChildFailed: the module raises, dies or hangs, or its clock is no clock.
    """
    pace = PACES[protocol]
    tried = list(watch.calls(ESTIMATE_CALLS, pace=pace))
    claimed_us = statistics.fmean([each for block in tried for each in block.calls_us])
    wall_us = sum(block.wall_us for block in tried) / ESTIMATE_CALLS
    plan = call_plan(
        protocol,
        call_us=min(claimed_us, wall_us),  # who claims more would be timed less often
        clear_us=CUDA_CLEAR_US if watch.device == "cuda" else 0.0,
    )
    for _ in watch.calls(plan.warm_up, pace=pace, clears=False):
        pass
    for _ in watch.calls(plan.discarded, pace=pace):
        pass
    counted = []
    for block in watch.calls(plan.counted, pace=pace):
        counted.append(block)
        if after_block is not None:
            after_block()
    return counted


def calls_us(blocks: list[Block]) -> list[float]:
    """Return the times of all calls of blocks, in order."""
    return [each for block in blocks for each in block.calls_us]
