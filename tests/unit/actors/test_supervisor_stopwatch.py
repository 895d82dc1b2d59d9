"""The stopwatch against a child that answers by a script: its blocks, whose clock is believed."""

from __future__ import annotations

import os
import random
import time
from dataclasses import replace
from typing import Any

import pytest

from kopt.actors.config import TimingConfig
from kopt.actors.devices.pool import new_pool, swept, wrapped
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.gate import Release
from kopt.actors.supervisor.made import Made
from kopt.actors.supervisor.stopwatch import KEPT_BYTES, MAX_CALLS, Stopwatch
from kopt.actors.supervisor.two_clocks import blocks_disagree, clocks_disagree, clocks_of
from kopt.overhead import TAIL_FACTOR, Block, until_answered

CALL_US = 200.0
TAIL_S = 0.004
"""From when a device has done a block to the answer."""


class ScriptedChild:
    """Spends the time of its calls by waiting busily, and says of them what its script says."""

    def __init__(self, say, *, call_us: float = CALL_US, device: str = "cpu") -> None:
        self.say, self.call_us, self.device = say, call_us, device
        self.pid, self.is_guarded, self.pool_words = os.getpid(), False, 0
        self.last = 7
        """What the device says of the last digest."""
        self.counts: list[int] = []
        self.seeds: list[int] = []

    def ask(
        self,
        operation: str,
        *,
        timeout_s: float,
        numbers,
        count,
        seed,
        flush,
        pace,
        copies,
        key,
    ) -> dict[str, Any]:
        assert operation == "time"
        assert key >= 0
        assert timeout_s == 5.0
        assert flush is (self.device == "cuda")
        assert numbers == [0, 3]
        assert copies is False
        self.counts.append(count)
        self.seeds.append(seed)
        began_ns = time.perf_counter_ns()
        while (time.perf_counter_ns() - began_ns) / 1e3 < count * self.call_us:
            pass
        took_us = (time.perf_counter_ns() - began_ns) / 1e3
        said = {"commitment": "c" * 64, **self.say(took_us / count, took_us)}
        if self.device == "cuda" and said.get("calls_us") is not None:
            return said | {"calls_us": said["calls_us"] * count}
        return said

    def ask_released(
        self, operation: str, *, patience_s: float, **options
    ) -> tuple[dict[str, Any], Release]:
        assert self.device == "cuda"
        assert patience_s > 0.0
        went_ns = time.perf_counter_ns()
        answer = self.ask(operation, **options)
        done_ns = time.perf_counter_ns()
        time.sleep(TAIL_S)
        release = Release(went_ns=went_ns, done_ns=done_ns, last=self.last, was_queued=True)
        return {**answer, "last": 7}, release


def baseline(*, command_us: float, gap_us: float) -> list[Block]:
    """Blocks of one call of 100 us, of which a child says what is true."""
    total_us = 100.0 + gap_us
    one = Block(
        calls=1,
        wall_us=total_us + command_us,
        call_us=100.0,
        busy_us=100.0,
        total_us=total_us,
    )
    return [one] * 4


def honest(each_us: float, took_us: float) -> dict[str, Any]:
    return {"calls_us": [each_us * 0.98], "total_us": took_us}


def watch_of(child: ScriptedChild, *, output_bytes: int = 64, secret: int = 4) -> Stopwatch:
    return Stopwatch(
        child,  # type: ignore[arg-type]
        sets={0: [64], 3: [64, 1]},
        output_bytes=output_bytes,
        device=child.device,  # type: ignore[arg-type]
        timing=TimingConfig(block_ms=2.0),
        limit_s=5.0,
        rng=random.Random(secret),
    )


def test_an_honest_clock_is_believed_and_its_blocks_fill_the_time() -> None:
    child = ScriptedChild(honest)
    watch = watch_of(child)
    watch.warm_up()
    assert clocks_disagree(watch) is None
    assert watch.block().call_us >= 0.98 * CALL_US
    assert 2 <= child.counts[-1] <= 20  # 2 ms of 200 us calls


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_a_clock_that_runs_slow_is_not_believed(share) -> None:
    def slow(each_us, took_us):
        return {"calls_us": [each_us * share], "total_us": took_us * share}

    watch = watch_of(ScriptedChild(slow))
    watch.warm_up()
    said = clocks_disagree(watch)
    assert said is not None
    assert said.startswith("the candidate's clock says")


def test_time_that_passes_between_the_calls_is_for_the_blocks_to_show() -> None:
    def hiding(each_us, took_us):
        return {"calls_us": [each_us * 0.3], "total_us": took_us}

    watch = watch_of(ScriptedChild(hiding))
    watch.warm_up()
    assert clocks_disagree(watch) is None
    blocks = [watch.block() for _ in range(4)]
    assert blocks_disagree(blocks, reference=baseline(command_us=20.0, gap_us=4.0), device="cpu")


def test_a_clock_that_lies_once_is_asked_again() -> None:
    lies = [True]

    def once(each_us, took_us):
        share = 0.5 if lies and len(child.counts) > 8 and lies.pop() else 1.0
        return {"calls_us": [each_us * share * 0.98], "total_us": took_us * share}

    child = ScriptedChild(once)
    watch = watch_of(child)
    watch.warm_up()
    assert clocks_disagree(watch) is None


def of(call_us: float, *, beside_us: float, calls: int = 10) -> Block:
    wall_us = calls * (call_us + beside_us)
    return Block(
        calls=calls,
        wall_us=wall_us,
        call_us=call_us,
        busy_us=calls * call_us,
        total_us=wall_us,
    )


def test_gaps_like_the_baselines_are_believed() -> None:
    blocks = [of(140.0, beside_us=60.0, calls=1)] * 4
    assert blocks_disagree(blocks, reference=baseline(command_us=0.0, gap_us=4.0), device="cpu")
    assert (
        blocks_disagree(blocks, reference=baseline(command_us=0.0, gap_us=60.0), device="cpu")
        is None
    )


def test_blocks_that_say_less_than_passed_are_not_believed() -> None:
    reference = baseline(command_us=50.0, gap_us=5.0)  # 10 us beside each of ten calls
    # Allowed beside a call: the reference's 10 us by 1.5, a tenth of 100 us, and 10 us: 35 us.
    assert (
        blocks_disagree([of(100.0, beside_us=34.0)] * 4, reference=reference, device="cpu") is None
    )
    said = blocks_disagree([of(100.0, beside_us=36.0)] * 4, reference=reference, device="cpu")
    assert said == (
        "36 us pass beside each of the candidate's timed calls, 10 us beside the baseline's"
    )


def test_a_long_block_may_not_hide_in_what_a_short_one_costs() -> None:
    reference = baseline(command_us=200.0, gap_us=5.0)
    assert (
        blocks_disagree([of(10.0, beside_us=60.0, calls=4)], reference=reference, device="cpu")
        is None
    )
    assert blocks_disagree([of(10.0, beside_us=60.0, calls=400)], reference=reference, device="cpu")


def test_one_disturbed_block_of_five_accuses_nobody() -> None:
    reference = baseline(command_us=0.0, gap_us=10.0)
    blocks = [of(100.0, beside_us=12.0)] * 4 + [of(100.0, beside_us=5_000.0)]
    assert blocks_disagree(blocks, reference=reference, device="cpu") is None


@pytest.mark.parametrize(("output_bytes", "most"), [(KEPT_BYTES["cpu"] // 3, 3), (1 << 50, 2)])
def test_a_block_keeps_no_more_outputs_than_fit(output_bytes, most) -> None:
    child = ScriptedChild(honest, call_us=1.0)
    watch = watch_of(child, output_bytes=output_bytes)
    watch.warm_up()
    clocks_of(watch)
    watch.block()
    assert max(child.counts) == most  # a slope needs two


def test_a_clock_that_says_next_to_nothing_does_not_make_endless_blocks() -> None:
    def nearly_nothing(each_us, took_us):
        return {"calls_us": [1e-3], "total_us": 1e-3}

    child = ScriptedChild(nearly_nothing)
    watch = watch_of(child)
    watch.warm_up()
    watch.block()
    assert max(child.counts) < MAX_CALLS / 10


def test_a_block_that_was_sized_on_a_busy_host_grows_once_the_host_is_calm() -> None:
    child = ScriptedChild(honest, call_us=3_000.0)
    watch = watch_of(child)
    watch.warm_up()
    watch.block()
    assert child.counts[-1] == 1  # 2 ms of 3 ms calls
    child.call_us = CALL_US
    for _ in range(50):  # this host may be busy itself; one calm block is enough
        watch.block()
        if child.counts[-1] >= 4:
            break
    assert child.counts[-1] >= 4
    child.call_us = 3_000.0
    watch.block()
    watch.block()
    assert child.counts[-1] >= 4  # what was quick once is slowed by others now


def test_a_block_has_as_many_calls_as_it_is_asked_for() -> None:
    child = ScriptedChild(honest)
    watch = watch_of(child)
    watch.warm_up()
    assert watch.full >= 2
    assert watch.block(1).calls == 1
    assert watch.block().calls == watch.full


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


def test_a_block_that_was_released_lasts_until_its_device_is_done() -> None:
    child = ScriptedChild(honest, device="cuda", call_us=1.0)
    block = watch_of(child).run(8)
    assert block.wall_us < block.answer_us - TAIL_S * 1e6
    trusted = replace(block, answer_us=block.wall_us + 100.0)
    (longer,) = until_answered([block], trusted=[trusted])
    assert longer.wall_us == pytest.approx(block.answer_us - TAIL_FACTOR * 100.0)
    assert until_answered([trusted], trusted=[trusted]) == [trusted]


def test_a_block_that_ends_with_another_output_than_its_device_said_has_no_clock() -> None:
    child = ScriptedChild(honest, device="cuda", call_us=1.0)
    child.last = 8
    with pytest.raises(ChildFailed) as caught:
        watch_of(child).run(8)
    assert caught.value.stage == "clock"


def test_what_a_call_was_given_is_known_without_asking() -> None:
    child = ScriptedChild(honest)
    watch = watch_of(child)
    block = watch.block()
    made = watch.last
    assert (made.calls, made.seed) == (block.calls, child.seeds[-1])
    assert made.commitment == "c" * 64
    digests = [17] * made.calls
    first = made.given(0, sizes=watch.sizes, digests=digests)
    assert first.seed == made.seed
    assert first == made.given(0, sizes=watch.sizes, digests=[99] * made.calls)
    assert first != replace(made, key=made.key + 1).given(0, sizes=watch.sizes, digests=digests)
    assert first.number in watch.sizes
    assert first.perturbation is not None


def test_what_a_call_was_given_depends_on_the_output_before() -> None:
    made = Made(numbers=(0,), seed=3, calls=3, commitment="", last=7)
    sizes = {0: [1 << 20]}
    given = [made.given(2, sizes=sizes, digests=[5, digest, 7]) for digest in (1, 2)]
    assert given[0].seed == given[1].seed == 5
    assert given[0].perturbation != given[1].perturbation


def test_what_a_call_was_given_depends_on_the_key_and_on_the_pool() -> None:
    sizes = {0: [1 << 20]}
    made = Made(numbers=(0,), seed=3, calls=2, commitment="", last=7, key=11)
    first = made.given(0, sizes=sizes, digests=[5, 7])
    assert first != replace(made, key=12).given(0, sizes=sizes, digests=[5, 7])
    mixed = replace(made, pool_words=64)
    assert mixed.given(1, sizes=sizes, digests=[5, 7]) != made.given(1, sizes=sizes, digests=[5, 7])
    key = wrapped(11 + swept(new_pool(64, device="cpu"), 11))
    same = replace(made, key=key).given(0, sizes=sizes, digests=[5, 7])
    assert mixed.given(0, sizes=sizes, digests=[5, 7]) == same


def test_order_and_content_come_from_the_secret() -> None:
    children = [ScriptedChild(honest, call_us=1.0) for _ in range(2)]
    for child, secret in zip(children, (1, 2), strict=True):
        watch = watch_of(child, secret=secret)
        for _ in range(8):
            watch.block()
    assert children[0].seeds != children[1].seeds
