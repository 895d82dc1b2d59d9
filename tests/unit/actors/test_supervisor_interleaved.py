"""A race's blocks, in turn: of one size where alike, as deep as is queued, begun again."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pytest

from kopt.actors.config import TimingConfig
from kopt.actors.supervisor.gate import Release
from kopt.actors.supervisor.interleaved import Side, block_calls, run_race
from kopt.actors.supervisor.stopwatch import QUEUE_S, VAIN_QUEUE_S, Stopwatch
from kopt.queue_depth import FEWEST_BLOCKS, MOST_CALLS
from kopt.racing import Race, speedup_interval

DEVICE_US = 100.0
LAUNCH_US = 5.0
QUEUE = 1_000
"""Launches that a queue holds."""


@pytest.mark.parametrize(
    ("mine", "theirs", "both"),
    [(24, 63, (63, 63)), (63, 24, (63, 63)), (5, 5, (5, 5)), (4, 1, (4, 4)), (5, 1, (5, 1))],
)
def test_blocks_that_are_alike_have_the_calls_of_the_larger(mine, theirs, both) -> None:
    assert block_calls(mine, theirs) == both


class GpuChild:
    """A GPU as its supervisor sees it: a block that is let go too early takes as long as launching.

    A call has `launches`, of which a queue holds QUEUE; in a burst of another load launching takes
    longer than anybody waits.
    """

    is_guarded = False
    pool_words = 0

    def __init__(self, *, launches: int, secret: int, waits: bool = False) -> None:
        self.pid = os.getpid()
        self.launches, self.waits = launches, waits
        self.rng = random.Random(secret)
        self.bursts = 0.0
        """Share of the blocks that fall into a burst."""
        self.slower = 1.0
        """By which launching takes this process longer than others."""
        self.depths: Counter[int] = Counter()
        self.patience_s: list[float] = []

    def ask_released(
        self, operation: str, *, count: int, patience_s: float, **options
    ) -> tuple[dict[str, Any], Release]:
        assert operation == "time"
        self.depths[count] += 1
        self.patience_s.append(patience_s)
        is_queued = not self.waits and count * self.launches <= QUEUE
        if self.rng.random() < self.bursts:
            is_queued = False
        late_us = 0.0 if is_queued else LAUNCH_US * self.launches * self.slower
        calls_us = [DEVICE_US * self.rng.uniform(0.999, 1.001) + late_us for _ in range(count)]
        answer = {
            "commitment": "c" * 64,
            "calls_us": calls_us,
            "total_us": sum(calls_us),
            "last": 7,
        }
        done_ns = int(sum(calls_us) * 1e3)
        return answer, Release(went_ns=0, done_ns=done_ns, last=7, was_queued=is_queued)


def watch_of(child: GpuChild) -> Stopwatch:
    watch = Stopwatch(
        child,  # type: ignore[arg-type]
        sets={0: [64]},
        output_bytes=64,
        device="cuda",
        timing=TimingConfig(),
        limit_s=5.0,
        rng=random.Random(4),
    )
    watch.block(1)  # from which it takes how many calls fill one
    return watch


def side_of(watch: Stopwatch) -> Side:
    return Side(watch, lambda calls: watch.run(calls))


def raced(mine: Stopwatch, theirs: Stopwatch, *, secret: int = 1):
    return run_race(
        "eager",
        mine=side_of(mine),
        theirs=side_of(theirs),
        new_race=lambda: Race(min_pairs=14, max_pairs=14),
        rng=random.Random(secret),
    )


@pytest.mark.parametrize(
    ("launches", "depth"), [(1, MOST_CALLS), (30, 20), (150, 5), (600, 1), (1_000, 1)]
)
def test_a_block_has_as_many_calls_as_are_queued_whole(launches, depth) -> None:
    watch = watch_of(GpuChild(launches=launches, secret=2))
    watch.find_depth()
    assert watch.depth.calls == depth
    assert watch.run(watch.full).was_queued
    assert watch.most_calls == depth


@pytest.mark.parametrize(("launches", "waits"), [(5, True), (QUEUE + 1, False)])
def test_a_call_that_is_never_queued_whole_is_timed_as_any_other(launches, waits) -> None:
    child = GpuChild(launches=launches, secret=2, waits=waits)
    watch = watch_of(child)
    watch.find_depth()
    assert watch.depth.is_vain
    assert watch.depth.calls == MOST_CALLS
    watch.run(1)
    assert child.patience_s[-1] == VAIN_QUEUE_S < QUEUE_S == child.patience_s[0]


def test_a_depth_is_found_anew_each_time() -> None:
    child = GpuChild(launches=600, secret=2)
    watch = watch_of(child)
    watch.find_depth()
    child.launches = 1
    watch.find_depth()
    assert watch.depth.calls == MOST_CALLS


def test_both_sides_of_a_race_have_the_smaller_blocks_of_the_two() -> None:
    mine, theirs = (watch_of(GpuChild(launches=each, secret=each)) for each in (1, 150))
    for watch in (mine, theirs):
        watch.find_depth()
    found = raced(mine, theirs)
    assert {block.calls for block in (*found.mine, *found.theirs)} == {5}
    assert len(found.mine) == len(found.theirs) == len(found.ratios) == 14


def test_a_race_whose_blocks_turn_out_too_deep_begins_again_with_smaller_ones() -> None:
    mine, theirs = GpuChild(launches=1, secret=2), GpuChild(launches=1, secret=3)
    watches = [watch_of(child) for child in (mine, theirs)]
    for watch in watches:
        watch.find_depth()
    for child in (mine, theirs):
        child.launches = 90
    found = raced(*watches)
    assert {block.calls for block in (*found.mine, *found.theirs)} == {10}
    assert len(found.ratios) == 14
    assert all(abs(ratio) < 0.01 for ratio in found.ratios)


def test_a_race_begins_again_no_more_often_than_a_depth_can_be_halved() -> None:
    mine, theirs = GpuChild(launches=1, secret=2), GpuChild(launches=1, secret=3)
    watches = [watch_of(child) for child in (mine, theirs)]
    for watch in watches:
        watch.find_depth()
    mine.waits = True  # a candidate that lies about it does no better
    before = sum(theirs.depths.values())
    found = raced(*watches)
    halvings = MOST_CALLS.bit_length() - 1
    assert sum(theirs.depths.values()) - before == halvings * FEWEST_BLOCKS + 14
    assert len(found.ratios) == 14


def test_equal_kernels_beside_a_busy_neighbour_are_not_called_faster() -> None:
    # Two processes whose launches take 5 % more or less time: let go too early, they are apart.
    faster = 0
    for secret in range(60):
        rng = random.Random(secret)
        children = [GpuChild(launches=80, secret=100 + 2 * secret + at) for at in range(2)]
        for child in children:
            child.slower, child.bursts = rng.uniform(0.95, 1.05), 0.05
        mine, theirs = (watch_of(child) for child in children)
        for watch in (mine, theirs):
            watch.find_depth()
        found = raced(mine, theirs, secret=secret)
        faster += speedup_interval(found.ratios, apart=0.01)[1][0] > 1.0
    assert faster == 0
