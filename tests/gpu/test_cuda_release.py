"""Blocks of a GPU are queued, released by us and timed by our clock, as deep as the queue takes."""

from __future__ import annotations

import statistics
import threading
import time

import pytest

from kopt.actors.config import EvaluateConfig, TimingConfig
from kopt.actors.supervisor.gate import Gate
from kopt.actors.supervisor.repeated import RaceStudy
from kopt.candidate import Candidate
from kopt.problem import Problem
from kopt.queue_depth import MOST_CALLS

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

CALLS = 8


@pytest.fixture(scope="module")
def device():
    """A CUDA device of this process, joined to a gate of ours."""
    import torch

    from kopt.actors.devices.cuda import CudaDevice

    made, gate = CudaDevice(), Gate()
    made.join(gate.fd)
    # A kernel's first launch waits for the device, which waits for its release.
    released((made, gate), lambda arguments: torch.relu(arguments[0]), patience_s=0.05)
    yield made, gate
    gate.close()


def released(device, call, *, count: int = CALLS, patience_s: float = 1.0):
    """Queue a block of calls in another thread, let it go, and return (times, release)."""
    import torch

    made, gate = device
    x = torch.randn(1 << 20, device="cuda")
    made.ticket = gate.next_ticket()
    content = made.content({0: [x]}, count=count, key=0, sweeps=True)
    found: list[object] = []

    def run() -> None:
        with torch.no_grad():
            found.append(
                made.time_calls(
                    call,
                    [[x]] * count,
                    before=lambda position: None,
                    after=lambda out: content.take([out]),
                    flush=True,
                )
            )

    thread = threading.Thread(target=run)
    thread.start()
    release = gate.release(
        key=5, patience_s=patience_s, limit_s=20.0, has_answered=lambda: bool(found)
    )
    thread.join()
    made.ticket = 0
    assert release.last == content.end()[-1]
    return found[0], release


def test_what_is_queued_waits_for_its_release(device) -> None:
    import torch

    timed, release = released(device, lambda arguments: torch.relu(arguments[0]))
    assert release.was_queued
    assert sum(timed.each_us) < timed.total_us <= release.wall_us + 5.0


def test_our_clock_agrees_with_the_devices(device) -> None:
    import torch

    for _ in range(3):
        released(device, lambda arguments: torch.relu(arguments[0]), count=MOST_CALLS)
    beside_us = []
    for _ in range(20):
        timed, release = released(
            device, lambda arguments: torch.relu(arguments[0]), count=MOST_CALLS
        )
        beside_us.append(release.wall_us - timed.total_us)
    assert -2.0 < statistics.median(beside_us) < 50.0


def test_what_launching_takes_does_not_show(device) -> None:
    import torch

    def slow(arguments) -> object:
        until_s = time.perf_counter() + 2e-3
        while time.perf_counter() < until_s:
            pass
        return torch.relu(arguments[0])

    released(device, slow)
    timed, release = released(device, slow)
    quick, _ = released(device, lambda arguments: torch.relu(arguments[0]))
    assert release.was_queued
    assert statistics.median(timed.each_us) < 1.3 * statistics.median(quick.each_us)


def test_a_call_that_waits_for_the_device_is_let_go_unqueued(device) -> None:
    import torch

    timed, release = released(
        device,
        lambda arguments: torch.relu(arguments[0]) * float(arguments[0].sum()),
        patience_s=0.05,
    )
    assert not release.was_queued
    assert len(timed.each_us) == CALLS


CHAIN = """
import torch


class {name}(torch.nn.Module):
    def forward(self, x):
        for _ in range({steps}):
            x = torch.relu(x)
        return x{waits}


def get_inputs():
    return [torch.randn(1 << 16)]
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    config = EvaluateConfig(
        secret=5, compile=False, trials=1, timing=TimingConfig(min_pairs=10, max_pairs=10)
    )
    folder = tmp_path_factory.mktemp("released")
    made = RaceStudy(config, device="cuda", cache_dir=folder)
    yield made
    made.close()


def raced(study, tmp_path, *, steps: int, waits: str = ""):
    """The depths of both sides after a race of equal kernels, and its timing."""
    problem = Problem(name="chain", source=CHAIN.format(name="Model", steps=steps, waits=waits))
    candidate = Candidate(
        source=CHAIN.format(name="ModelNew", steps=steps, waits=waits), language="torch"
    )
    with study.rematch(problem, candidate, build_dir=tmp_path) as rematch:
        timing = rematch.race()
        depths = rematch.depths()
    return depths, timing


def test_a_call_of_one_launch_is_queued_as_often_as_a_block_may_be_long(study, tmp_path) -> None:
    (mine, theirs), timing = raced(study, tmp_path, steps=1)
    assert mine == theirs == MOST_CALLS
    assert timing.speedup_ci[0] <= 1.0


def test_a_call_of_many_launches_has_smaller_blocks_on_both_sides(study, tmp_path) -> None:
    (mine, theirs), timing = raced(study, tmp_path, steps=400)
    assert mine == theirs <= 2
    assert timing.speedup_ci[0] <= 1.0


def test_a_call_that_waits_for_the_device_keeps_the_largest(study, tmp_path) -> None:
    (mine, theirs), timing = raced(
        study, tmp_path, steps=2, waits=" * (1.0 + 0.0 * float(x.sum()))"
    )
    assert mine == theirs == MOST_CALLS
    assert timing.speedup_ci[0] <= 1.0
