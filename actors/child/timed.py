"""A block of timed calls in the child: made as a chain, its outputs kept for whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns  # bound before a candidate could patch the time module
from typing import Any

from kopt.actors.child.chain import Chain, commitment
from kopt.actors.child.outputs import tensors_of
from kopt.actors.devices.base import Call, Device, Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBlock:
    """What is kept of the last block."""

    outputs: list[object] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """Input set of each call."""
    digests: list[int] = field(default_factory=list)


def time_block(
    device: Device,
    call: Call,
    sets: dict[int, list[Any]],
    *,
    numbers: Sequence[int],
    count: int,
    seed: int,
    key: int,
    flush: bool,
    pace: Pace,
    copies: bool,
    ticket: int = 0,
) -> tuple[KeptBlock, dict[str, Any]]:
    """Time a block of calls, each with a content and a seed of its own; return (kept, answer).

    The answer has the times of the calls (with flush: each, else their mean) and of the whole block
    by the device's clock, and the hash of the digests. A block with a ticket waits for its release,
    and its time is that of what was released; any other's has its preparation in it.
    """
    began_ns = perf_counter_ns()
    device.pace, device.ticket = pace, ticket
    tensors = {number: tensors_of(sets[number]) for number in numbers}
    content = device.content(tensors, count=count, key=key, sweeps=flush and pace == "ahead")
    chain = Chain(content, numbers, seed=seed, count=count, copies=copies)

    def before(position: int) -> None:
        chain.before_call(position)
        device.seed(seed + position)

    ready_ns = perf_counter_ns()
    timed = device.time_calls(
        call,
        [sets[turn.number] for turn in chain.turns],
        before=before,
        after=chain.after_call,
        flush=flush,
    )
    digests = chain.end()
    device.check()
    kept = KeptBlock(
        outputs=chain.outputs, numbers=[turn.number for turn in chain.turns], digests=digests
    )
    before_us = 0.0 if ticket else (ready_ns - began_ns) / 1e3
    return kept, {
        "calls_us": timed.each_us if flush else [sum(timed.each_us) / count],
        "total_us": before_us + timed.total_us,
        "commitment": commitment(digests),
        "last": digests[-1] if digests else 0,
    }
