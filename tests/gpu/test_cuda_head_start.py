"""The head start of timed calls on a GPU: starved calls are counted, and the pause is as long as
launching takes, for candidate and baseline alike."""

from __future__ import annotations

import time

import pytest

from kopt.actors.config import EvaluateConfig, TimingConfig
from kopt.actors.supervisor.repeated import RaceStudy
from kopt.candidate import Candidate
from kopt.head_start import FIRST_US, MOST_US
from kopt.problem import Problem

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

CALLS = 8


@pytest.fixture(scope="module")
def device():
    """A CUDA device of this process, warm."""
    from kopt.actors.devices.cuda import CudaDevice

    made = CudaDevice()
    for _ in range(3):
        starved_of(made, host_s=0.0, pause_us=500.0)
    return made


def starved_of(device, *, host_s: float, pause_us: float) -> int:
    """How many calls are starved whose launch takes the host so long."""
    import torch

    x = torch.randn(1 << 20, device="cuda")

    def call(arguments) -> object:
        until_s = time.perf_counter() + host_s
        while time.perf_counter() < until_s:
            pass
        return torch.relu(arguments[0])

    device.pause_us = pause_us
    timed = device.time_calls(
        call, [[x]] * CALLS, before=lambda position: None, after=lambda out: None, flush=True
    )
    return timed.starved


def test_a_call_that_is_launched_in_time_is_not_starved(device) -> None:
    assert starved_of(device, host_s=0.0, pause_us=500.0) <= 1


def test_a_call_that_is_launched_late_is_starved_until_its_pause_is_long_enough(device) -> None:
    assert starved_of(device, host_s=1.5e-3, pause_us=500.0) >= CALLS - 1
    assert starved_of(device, host_s=1.5e-3, pause_us=4_000.0) <= 1


def test_a_call_that_waits_for_the_device_is_starved_behind_any_pause(device) -> None:
    import torch

    x = torch.randn(1 << 10, device="cuda")

    def call(arguments) -> object:
        return torch.relu(arguments[0]) * float(arguments[0].sum())

    device.pause_us = MOST_US
    timed = device.time_calls(
        call, [[x]] * CALLS, before=lambda position: None, after=lambda out: None, flush=True
    )
    assert timed.starved == CALLS


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
    folder = tmp_path_factory.mktemp("head-start")
    made = RaceStudy(config, device="cuda", cache_dir=folder)
    yield made
    made.close()


def raced(study, tmp_path, *, steps: int, waits: str = ""):
    """The pause of both sides after a race of equal kernels, and its timing."""
    problem = Problem(name="chain", source=CHAIN.format(name="Model", steps=steps, waits=waits))
    candidate = Candidate(
        source=CHAIN.format(name="ModelNew", steps=steps, waits=waits), language="torch"
    )
    with study.rematch(problem, candidate, build_dir=tmp_path) as rematch:
        timing = rematch.race()
        pauses_us = rematch.pauses_us()
    return pauses_us, timing


def test_a_call_of_many_launches_gets_a_longer_head_start_on_both_sides(study, tmp_path) -> None:
    (mine_us, theirs_us), timing = raced(study, tmp_path, steps=400)
    assert mine_us == theirs_us > FIRST_US
    assert timing.speedup_ci[0] <= 1.0


def test_a_call_that_waits_for_the_device_keeps_the_first_one(study, tmp_path) -> None:
    (mine_us, theirs_us), timing = raced(
        study, tmp_path, steps=2, waits=" * (1.0 + 0.0 * float(x.sum()))"
    )
    assert mine_us == theirs_us == FIRST_US
    assert timing.speedup_ci[0] <= 1.0
