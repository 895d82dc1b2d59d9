"""A race's blocks, in turn: of one size where alike, behind one head start, begun again."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pytest

from kopt.actors.config import TimingConfig
from kopt.actors.supervisor.interleaved import Side, block_calls, run_race
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.head_start import FIRST_US, MOST_US, UNTRUSTED_MOST_US, HeadStart
from kopt.racing import Race, speedup_interval

DEVICE_US = 100.0


@pytest.mark.parametrize(
    ("mine", "theirs", "both"),
    [(24, 63, (63, 63)), (63, 24, (63, 63)), (5, 5, (5, 5)), (4, 1, (4, 4)), (5, 1, (5, 1))],
)
def test_blocks_that_are_alike_have_the_calls_of_the_larger(mine, theirs, both) -> None:
    assert block_calls(mine, theirs) == both


class GpuChild:
    """A GPU as a child sees it: a call that is launched late takes until it is launched.

    The host takes `host_us` to launch a call, give or take a fifth, and now and then a burst of
    another load makes it ten times that.
    """

    is_guarded = False

    def __init__(self, *, host_us: float, secret: int, waits: bool = False) -> None:
        self.pid = os.getpid()
        self.host_us, self.waits = host_us, waits
        self.rng = random.Random(secret)
        self.bursts = 0.0
        """Share of the calls that fall into a burst."""
        self.pauses: Counter[float] = Counter()

    def ask(self, operation: str, *, count: int, pause_us: float, **options) -> dict[str, Any]:
        assert operation == "time"
        self.pauses[pause_us] += 1
        calls_us, starved = [], 0
        for _ in range(count):
            host_us = self.host_us * self.rng.uniform(0.8, 1.2)
            if self.rng.random() < self.bursts:
                host_us *= 10.0
            late_us = host_us if self.waits else max(host_us - pause_us, 0.0)
            starved += late_us > 0.0
            calls_us.append(DEVICE_US * self.rng.uniform(0.999, 1.001) + late_us)
        return {
            "commitment": "c" * 64,
            "calls_us": calls_us,
            "total_us": sum(calls_us) + count * pause_us,
            "starved": starved,
        }


def watch_of(child: GpuChild, *, most_us: float = MOST_US) -> Stopwatch:
    return Stopwatch(
        child,  # type: ignore[arg-type]
        sets={0: [64]},
        output_bytes=64,
        device="cuda",
        timing=TimingConfig(),
        limit_s=5.0,
        rng=random.Random(4),
        head_start=HeadStart(most_us=most_us),
    )


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
    ("host_us", "pause_us"), [(100.0, 250.0), (350.0, 500.0), (700.0, 1_000.0), (3_000.0, 4_000.0)]
)
def test_a_head_start_is_as_long_as_launching_takes(host_us, pause_us) -> None:
    watch = watch_of(GpuChild(host_us=host_us, secret=2))
    watch.find_head_start()
    assert watch.head_start.pause_us == pause_us


@pytest.mark.parametrize("host_us", [50.0, 20_000.0])
def test_a_call_that_waits_for_the_device_is_timed_behind_the_first_pause(host_us) -> None:
    watch = watch_of(GpuChild(host_us=host_us, secret=2, waits=True))
    watch.find_head_start()
    assert watch.head_start.pause_us == FIRST_US


def test_a_host_that_became_calm_pauses_no_longer_than_it_must() -> None:
    child = GpuChild(host_us=3_000.0, secret=2)
    watch = watch_of(child)
    watch.find_head_start()
    child.host_us = 50.0
    watch.find_head_start()
    assert watch.head_start.pause_us == FIRST_US


def test_both_sides_of_a_race_have_the_longer_head_start_of_the_two() -> None:
    mine = watch_of(GpuChild(host_us=50.0, secret=2), most_us=UNTRUSTED_MOST_US)
    theirs = watch_of(GpuChild(host_us=1_500.0, secret=3))
    for watch in (mine, theirs):
        watch.find_head_start()
    found = raced(mine, theirs)
    assert {block.pause_us for block in (*found.mine, *found.theirs)} == {2_000.0}
    assert len(found.mine) == len(found.theirs) == len(found.ratios) == 14


def test_a_candidate_that_asks_for_a_long_head_start_is_given_a_short_one() -> None:
    mine = watch_of(GpuChild(host_us=3_000.0, secret=2), most_us=UNTRUSTED_MOST_US)
    theirs = watch_of(GpuChild(host_us=50.0, secret=3))
    for watch in (mine, theirs):
        watch.find_head_start()
    found = raced(mine, theirs)
    assert {block.pause_us for block in (*found.mine, *found.theirs)} == {FIRST_US}


def test_a_race_whose_host_gets_busy_begins_again_with_a_longer_head_start() -> None:
    mine, theirs = GpuChild(host_us=100.0, secret=2), GpuChild(host_us=100.0, secret=3)
    watches = [watch_of(mine, most_us=UNTRUSTED_MOST_US), watch_of(theirs)]
    for watch in watches:
        watch.find_head_start()
    for child in (mine, theirs):
        child.host_us = 600.0
    found = raced(*watches)
    assert {block.pause_us for block in (*found.mine, *found.theirs)} == {1_000.0}
    assert len(found.ratios) == 14
    assert all(abs(ratio) < 0.01 for ratio in found.ratios)


def test_a_race_begins_again_no_more_often_than_a_head_start_can_be_doubled() -> None:
    mine, theirs = GpuChild(host_us=50.0, secret=2), GpuChild(host_us=50.0, secret=3)
    watches = [watch_of(mine, most_us=UNTRUSTED_MOST_US), watch_of(theirs)]
    for watch in watches:
        watch.find_head_start()
    for child in (mine, theirs):
        child.waits, child.host_us = True, 9_000.0
    before = sum(theirs.pauses.values())
    found = raced(*watches)
    assert sum(theirs.pauses.values()) - before == 4 * 2 + 14
    assert len(found.ratios) == 14


def test_equal_kernels_beside_a_busy_neighbour_are_not_called_faster() -> None:
    # Two processes whose launches take 5 % more or less time: starved, they are 5 % apart.
    faster = 0
    for secret in range(60):
        rng = random.Random(secret)
        children = [
            GpuChild(host_us=400.0 * rng.uniform(0.95, 1.05), secret=100 + 2 * secret + at)
            for at in range(2)
        ]
        for child in children:
            child.bursts = 0.05
        mine = watch_of(children[0], most_us=UNTRUSTED_MOST_US)
        theirs = watch_of(children[1])
        for watch in (mine, theirs):
            watch.find_head_start()
        found = raced(mine, theirs, secret=secret)
        faster += speedup_interval(found.ratios, apart=0.01)[1][0] > 1.0
    assert faster == 0


def test_what_a_child_says_of_its_head_start_is_a_number_of_its_calls_or_nothing() -> None:
    class Liar(GpuChild):
        def ask(self, operation: str, **options) -> dict[str, Any]:
            return {**super().ask(operation, **options), "starved": self.said}

    child = Liar(host_us=9_000.0, secret=2)
    watch = watch_of(child)
    for said in (None, True, "8", -1, 9, 1e9, [8]):
        child.said = said
        assert watch.run(8).starved == 0
    child.said = 8
    assert watch.run(8).starved == 8
