"""One module timed as a published protocol times it, by a child that counts what it is asked."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from typing import Any

import pytest

from kopt.actors.config import TimingConfig
from kopt.actors.supervisor.measurement import calls_us, measure
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.queue_depth import MOST_CALLS

CALL_US = 430.0


class CountingChild:
    """Says of each call what it is told to, and notes how calls were asked for."""

    is_guarded = False

    def __init__(self, *, call_us: float = CALL_US, wall_us: float = 0.0) -> None:
        self.pid = os.getpid()  # of which the time spent waiting is read
        self.call_us, self.wall_us = call_us, wall_us
        self.asked: Counter[tuple[str, bool]] = Counter()
        self.largest = 0

    def ask(
        self, operation: str, *, timeout_s: float, numbers, count, seed, key, flush, pace, copies
    ) -> dict[str, Any]:
        del operation, timeout_s, numbers, seed, key, copies
        began_ns = time.perf_counter_ns()
        while (time.perf_counter_ns() - began_ns) / 1e3 < count * self.wall_us:
            pass
        self.asked[pace, flush] += count
        self.largest = max(self.largest, count)
        said = [self.call_us] * count if flush else [self.call_us]
        return {"commitment": "c" * 64, "calls_us": said, "total_us": count * self.call_us}


def watch_of(child: CountingChild, *, device: str = "cuda", output_bytes: int = 64) -> Stopwatch:
    return Stopwatch(
        child,  # type: ignore[arg-type]
        sets={0: [64]},
        output_bytes=output_bytes,
        device=device,  # type: ignore[arg-type]
        timing=TimingConfig(),
        limit_s=5.0,
        rng=random.Random(4),
    )


def test_do_bench_counts_the_calls_that_fill_its_time_each_cold_and_none_waited_for() -> None:
    child = CountingChild(wall_us=CALL_US + 1.0)
    blocks = measure(watch_of(child), protocol="do_bench")
    # 430 us and 70 us of clearing: 50 calls of warm-up as they come, 5 + 200 cold ones.
    assert child.asked == {("queued", False): 50, ("queued", True): 205}
    assert calls_us(blocks) == [CALL_US] * 200
    assert child.largest == MOST_CALLS


def test_kernelbench_throws_one_trial_away_and_waits_before_each() -> None:
    child = CountingChild()
    blocks = measure(watch_of(child), protocol="kernelbench")
    assert child.asked == {("waiting", False): 3, ("waiting", True): 5 + 1 + 100}
    assert len(calls_us(blocks)) == 100


def test_on_a_cpu_nothing_is_cleared_and_calls_are_told_apart_all_the_same() -> None:
    child = CountingChild(wall_us=CALL_US + 1.0)
    blocks = measure(watch_of(child, device="cpu"), protocol="do_bench")
    assert len(calls_us(blocks)) == int(100_000 / CALL_US)


def test_who_claims_to_be_slow_is_timed_no_less_often() -> None:
    child = CountingChild(call_us=1e6, wall_us=50.0)
    blocks = measure(watch_of(child), protocol="do_bench")
    assert len(calls_us(blocks)) > 100


@pytest.mark.parametrize("protocol", ["do_bench", "kernelbench"])
def test_every_block_that_counts_may_be_audited(protocol) -> None:
    child = CountingChild()
    watch = watch_of(child)
    seen: list[int] = []
    blocks = measure(watch, protocol=protocol, after_block=lambda: seen.append(watch.last.calls))
    assert seen == [block.calls for block in blocks]


def test_a_block_holds_no_more_outputs_than_fit() -> None:
    child = CountingChild()
    measure(watch_of(child, output_bytes=1 << 29), protocol="kernelbench")
    assert child.largest == 2
