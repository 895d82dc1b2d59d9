"""What a block of timed calls costs beside the calls.

Pure: numbers in, numbers out. The child of a candidate shares its process with the candidate, so
that what it says of its own times is a claim. The child of a baseline holds trusted code alone: how
much of our wall time its blocks spend beside the calls is measured there, on the same machine and
between the candidate's own blocks, and allowed to the candidate too. What is left is its calls'
(kopt.hidden_time). Source: DESIGN §5.4; exploits 20, 30, 31, 33.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

TAIL_FACTOR = 2.0
"""What a child may do with a block that its device is done with, before it answers, over what the
baseline's does: times and digests are fetched, some 500 to 900 us for forty calls on an H200's
host, and up to 1.4 times as long beside a candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Times of one block of calls, in microseconds."""

    calls: int
    """How many were made."""
    wall_us: float
    """From command to answer, by our clock; of a block that was released, from then until the
    device said that it was done."""
    call_us: float
    """One call, by the child's clock."""
    busy_us: float
    """All calls, by the child's clock."""
    total_us: float
    """All calls with what was done between them, by the child's clock."""
    calls_us: tuple[float, ...] = ()
    """Each call, by the child's clock, where it told them apart."""
    answer_us: float = 0.0
    """From there to the answer, by our clock; 0 where that is `wall_us`."""
    was_queued: bool = True
    """Whether all of it was queued when it was released (kopt.queue_depth)."""
    free_share: float = 1.0
    """Of its time, in which no thread of the child waited for a processor; 1 where that is not
    known, or does not matter."""

    @property
    def net_call_us(self) -> float:
        """One call, without what its child waited for a processor."""
        return self.call_us * self.free_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What passes beside the calls of an honest block, in microseconds."""

    command_us: float
    """Once a block: the command's way there and back; of one that was released, from then to the
    first call, and from the last to the device's word."""
    gap_us: float
    """With each call: its fresh content, its output's digest, on a GPU the sweep of the pool."""

    def beside_us(self, calls: int) -> float:
        """Return what passes beside each of so many calls."""
        return self.gap_us + self.command_us / calls


def overhead(trusted: Sequence[Block]) -> Overhead:
    """Return the overhead that blocks of trusted children show, the median of each part.

    Args:
        trusted: at least one.

    Raises:
        ValueError: there are none.
    """
    if not trusted:
        raise ValueError("an overhead needs at least one block of a baseline")
    return Overhead(
        command_us=_median([each.wall_us - each.total_us for each in trusted]),
        gap_us=_median([(each.total_us - each.busy_us) / each.calls for each in trusted]),
    )


def until_answered(blocks: Sequence[Block], *, trusted: Sequence[Block]) -> list[Block]:
    """Return blocks whose wall time lasts to about the answer.

    A device that says too early that a block is done has work left before its child can answer.

    Args:
        blocks: of any child.
        trusted: of the baseline, at least one: what its child does before it answers is no work.
    """
    tail_us = TAIL_FACTOR * _median([each.answer_us - each.wall_us for each in trusted])
    return [
        replace(block, wall_us=max(block.wall_us, block.answer_us - tail_us)) for block in blocks
    ]


def calm(blocks: Sequence[Block], *, share: float) -> Block:
    """Return a block beside whose calls least passed, but for this share of them.

    A busy host only adds, to some blocks more than to others.
    """
    ordered = sorted(blocks, key=beside_us)
    return ordered[_rank(len(ordered), share)]


def calm_beside_us(trusted: Sequence[Block], *, calls: int, share: float) -> float:
    """Return what would pass beside so many calls in a block of trusted children as calm as `calm`.

    Block by block, since one whose command was calm may have been disturbed between its calls: the
    calmest commands and the calmest gaps together are calmer than any block, a candidate's too.

    Args:
        trusted: at least one; of any number of calls.
        calls: of the candidate's block.
        share: as for `calm`.
    """
    beside = sorted(overhead([block]).beside_us(calls) for block in trusted)
    return beside[_rank(len(beside), share)]


def beside_us(block: Block) -> float:
    """Return what passed beside each call, if the child's times of the calls are true."""
    return (block.wall_us - block.busy_us) / block.calls


def _median(values: list[float]) -> float:
    """The least value that half of them do not exceed; at least 0."""
    return max(sorted(values)[_rank(len(values), 0.5)], 0.0)


def _rank(count: int, share: float) -> int:
    return max(math.ceil(share * count) - 1, 0)
