"""The stopwatch against a child that answers by a script: whose clock is believed."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from kopt.actors.config import TimingConfig
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.stopwatch import MAX_CALLS, Block, Stopwatch

CALL_US = 200.0


class ScriptedChild:
    """Spends the time of its calls by waiting busily, and says of them what its script says."""

    def __init__(self, say, *, call_us: float = CALL_US, device: str = "cpu") -> None:
        self.say, self.call_us, self.device = say, call_us, device
        self.orders: list[list[int]] = []
        self.seeds: list[int] = []

    def ask(self, operation: str, *, timeout_s: float, order, seed, flush) -> dict[str, Any]:
        assert operation == "time"
        assert timeout_s == 5.0
        assert flush is (self.device == "cuda")
        self.orders.append(order)
        self.seeds.append(seed)
        began_ns = time.perf_counter_ns()
        while (time.perf_counter_ns() - began_ns) / 1e3 < len(order) * self.call_us:
            pass
        took_us = (time.perf_counter_ns() - began_ns) / 1e3
        each_us = took_us / len(order)
        said = self.say(each_us, took_us)
        if self.device == "cuda" and said.get("calls_us") is not None:
            return said | {"calls_us": said["calls_us"] * len(order)}
        return said


def honest(each_us: float, took_us: float) -> dict[str, Any]:
    return {"calls_us": [each_us * 0.98], "total_us": took_us}


def watch_of(child: ScriptedChild, *, sets=None, secret: int = 4) -> Stopwatch:
    return Stopwatch(
        child,  # type: ignore[arg-type]
        sets=sets or {0: [64], 3: [64, 1]},
        device=child.device,  # type: ignore[arg-type]
        timing=TimingConfig(block_ms=2.0),
        limit_s=5.0,
        rng=random.Random(secret),
    )


def test_an_honest_clock_is_believed_and_its_blocks_fill_the_time() -> None:
    child = ScriptedChild(honest)
    watch = watch_of(child)
    watch.warm_up()
    assert watch.clocks_disagree(reference_gap_us=4.0) is None
    assert watch.block().call_us == pytest.approx(CALL_US, rel=0.5)
    assert 2 <= len(child.orders[-1]) <= 20  # 2 ms of 200 us calls


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_a_clock_that_runs_slow_is_not_believed(share) -> None:
    def slow(each_us, took_us):
        return {"calls_us": [each_us * share], "total_us": took_us * share}

    watch = watch_of(ScriptedChild(slow))
    watch.warm_up()
    said = watch.clocks_disagree(reference_gap_us=4.0)
    assert said is not None
    assert said.startswith("the candidate's clock says")


def test_time_that_passes_between_the_calls_is_not_believed() -> None:
    def hiding(each_us, took_us):
        return {"calls_us": [each_us * 0.3], "total_us": took_us}

    watch = watch_of(ScriptedChild(hiding))
    watch.warm_up()
    said = watch.clocks_disagree(reference_gap_us=4.0)
    assert said is not None
    assert "pass between the candidate's calls" in said


def test_a_gap_like_the_references_is_believed() -> None:
    def with_gap(each_us, took_us):
        return {"calls_us": [each_us - 60.0], "total_us": took_us}

    watch = watch_of(ScriptedChild(with_gap))
    watch.warm_up()
    assert watch.clocks_disagree(reference_gap_us=60.0) is None
    assert watch.clocks_disagree(reference_gap_us=4.0) is not None


def test_a_clock_that_lies_once_is_asked_again() -> None:
    lies = [True]

    def once(each_us, took_us):
        share = 0.5 if lies and len(child.orders) > 8 and lies.pop() else 1.0
        return {"calls_us": [each_us * share * 0.98], "total_us": took_us * share}

    child = ScriptedChild(once)
    watch = watch_of(child)
    watch.warm_up()
    assert watch.clocks_disagree(reference_gap_us=4.0) is None


def test_blocks_that_say_less_than_passed_are_not_believed() -> None:
    watch = watch_of(ScriptedChild(honest))
    reference = [Block(call_us=200.0, beside_us=10.0)] * 4
    # Allowed beside a call: the reference's 10 us by 1.5, a tenth of 100 us, and 10 us: 35 us.
    fair = [Block(call_us=100.0, beside_us=34.0)] * 4
    hiding = [Block(call_us=100.0, beside_us=36.0)] * 4
    assert watch.blocks_disagree(fair, reference=reference) is None
    said = watch.blocks_disagree(hiding, reference=reference)
    assert said == (
        "36 us pass beside each of the candidate's timed calls, 10 us beside the baseline's"
    )


def test_one_disturbed_block_of_five_accuses_nobody() -> None:
    watch = watch_of(ScriptedChild(honest))
    reference = [Block(call_us=200.0, beside_us=10.0)] * 5
    blocks = [Block(call_us=100.0, beside_us=12.0)] * 4 + [Block(call_us=100.0, beside_us=5_000.0)]
    assert watch.blocks_disagree(blocks, reference=reference) is None


def test_a_clock_that_says_next_to_nothing_does_not_make_endless_blocks() -> None:
    def nearly_nothing(each_us, took_us):
        return {"calls_us": [1e-3], "total_us": 1e-3}

    child = ScriptedChild(nearly_nothing)
    watch = watch_of(child)
    watch.warm_up()
    watch.block()
    assert max(map(len, child.orders)) < MAX_CALLS / 10


GARBAGE = [
    {},
    {"calls_us": None, "total_us": 1.0},
    {"calls_us": [], "total_us": 1.0},
    {"calls_us": [1.0, 1.0], "total_us": 2.0},
    {"calls_us": ["1"], "total_us": 1.0},
    {"calls_us": [True], "total_us": 1.0},
    {"calls_us": [1.0], "total_us": True},
    {"calls_us": [1.0], "total_us": "1"},
    {"calls_us": [1.0]},
    {"calls_us": [0.0], "total_us": 1.0},
    {"calls_us": [-1.0], "total_us": 1.0},
    {"calls_us": [float("inf")], "total_us": 1.0},
    {"calls_us": [float("nan")], "total_us": 1.0},
    {"calls_us": [10**400], "total_us": 1.0},
    {"calls_us": [1.0], "total_us": 1e300},
]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_an_answer_that_is_no_time_is_the_clocks_fault(garbage) -> None:
    watch = watch_of(ScriptedChild(lambda each_us, took_us: garbage, call_us=1.0))
    with pytest.raises(ChildFailed) as caught:
        watch.block()
    assert caught.value.stage == "clock"


def test_on_a_gpu_each_call_of_a_block_has_a_time() -> None:
    child = ScriptedChild(honest, device="cuda")
    watch = watch_of(child)
    watch.warm_up()
    assert watch.block().call_us > 0.0
    missing = ScriptedChild(lambda each_us, took_us: {"calls_us": None, "total_us": 1.0})
    with pytest.raises(ChildFailed):
        watch_of(missing).block()


def test_the_last_call_is_known_without_asking() -> None:
    child = ScriptedChild(honest)
    watch = watch_of(child)
    watch.block()
    order, seed = child.orders[-1], child.seeds[-1]
    assert watch.last.number == order[-1]
    assert watch.last.seed == seed + len(order) - 1
    assert watch.last.perturbation is not None


def test_order_and_content_come_from_the_secret() -> None:
    children = [ScriptedChild(honest, call_us=1.0) for _ in range(2)]
    for child, secret in zip(children, (1, 2), strict=True):
        watch = watch_of(child, secret=secret)
        for _ in range(8):
            watch.block()
    assert children[0].seeds != children[1].seeds
