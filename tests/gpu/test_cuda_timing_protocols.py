"""Timing protocols and the persisting L2 on a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from kopt.actors.builder import nothing_to_build
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.actors.devices.cuda_l2 import DRIVER, PERSISTING_L2_CACHE_SIZE, PersistingL2
from kopt.candidate import Candidate
from kopt.problem import Problem
from kopt.timing import TimingProtocol
from kopt.verdict import Correct

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

SIDE = 4096
MODEL = f"""
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(torch.sin(x) * 2.0)


def get_inputs():
    return [torch.randn({SIDE}, {SIDE})]
"""
PROBLEM = Problem(name="chain", source=MODEL)
SAME = Candidate(source=MODEL.replace("class Model(", "class ModelNew("), language="torch")


def timed_by(protocol: TimingProtocol, cache_dir) -> Correct:
    config = EvaluateConfig(
        secret=20_240_607,
        compile=False,
        trials=1,
        timeouts=TimeoutConfig(load_s=120.0, correctness_s=30.0, timing_s=60.0),
        timing=TimingConfig(protocol=protocol),
    )
    worker = DeviceWorker(config, "cuda", 0, str(cache_dir))
    try:
        built = nothing_to_build(SAME, cache_dir=cache_dir)
        verdict = worker.evaluate(PROBLEM, SAME, built).verdict
    finally:
        worker.close()
    assert isinstance(verdict, Correct), verdict.reason
    return verdict


@pytest.fixture
def chain():
    """Returns the reference's forward on the GPU of this process, as a function of nothing."""
    import torch

    x = torch.randn(SIDE, SIDE, device="cuda")

    def run() -> object:
        return torch.relu(torch.sin(x) * 2.0)

    return run


def test_do_bench_finds_what_tritons_own_finds(tmp_path, chain) -> None:
    from triton.testing import do_bench

    timing = timed_by("do_bench", tmp_path).timing
    theirs_us = do_bench(chain, warmup=25, rep=100, return_mode="median") * 1e3
    assert timing.protocol == "do_bench"
    assert timing.time_us == pytest.approx(theirs_us, rel=0.15)
    assert timing.baseline_us == pytest.approx(theirs_us, rel=0.15)
    assert timing.eager_us == pytest.approx(theirs_us, rel=0.15)


def test_kernelbench_finds_what_events_around_waited_for_calls_find(tmp_path, chain) -> None:
    import torch

    timing = timed_by("kernelbench", tmp_path).timing
    each_us = []
    for _ in range(100):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.empty((32, 1024, 1024), dtype=torch.int64, device="cuda").fill_(42)
        begin.record()
        chain()
        end.record()
        torch.cuda.synchronize()
        each_us.append(begin.elapsed_time(end) * 1e3)
    assert timing.protocol == "kernelbench"
    assert timing.time_us == pytest.approx(sum(each_us) / len(each_us), rel=0.2)


@pytest.fixture
def set_aside() -> Iterator[PersistingL2]:
    """A context with some of its L2 set aside, given back at the end."""
    import torch

    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.zeros(1, device="cuda")
    part = PersistingL2()
    driver = ctypes.CDLL(DRIVER)
    if driver.cuCtxSetLimit(PERSISTING_L2_CACHE_SIZE, ctypes.c_size_t(4 << 20)) != 0:
        pytest.skip("this GPU sets no part of its L2 aside (MIG, MPS, or before sm_80)")
    assert part.set_aside_bytes() > 0
    yield part
    driver.cuCtxSetLimit(PERSISTING_L2_CACHE_SIZE, ctypes.c_size_t(0))


def test_what_was_set_aside_of_the_l2_is_let_go(set_aside) -> None:  # exploit 32
    set_aside.let_go()
    assert set_aside.set_aside_bytes() == 0


@pytest.mark.parametrize("pace", ["ahead", "queued", "waiting"])
def test_no_timed_call_begins_with_l2_set_aside(set_aside, pace) -> None:  # exploit 32
    import torch

    from kopt.actors.devices.cuda import CudaDevice

    device = CudaDevice()
    device.pace = pace
    seen: list[int] = []
    driver = ctypes.CDLL(DRIVER)

    def call(arguments) -> object:
        seen.append(set_aside.set_aside_bytes())
        driver.cuCtxSetLimit(PERSISTING_L2_CACHE_SIZE, ctypes.c_size_t(4 << 20))
        return arguments[0] + 1.0

    timed = device.time_calls(
        call,
        [[torch.zeros(1024, device="cuda")]] * 4,
        before=lambda position: None,
        after=lambda out: None,
        flush=True,
    )
    assert seen == [0, 0, 0, 0]
    assert all(each > 0.0 for each in timed.each_us)


def test_what_the_driver_refuses_leaves_no_error_for_the_next_launch(set_aside) -> None:
    import torch

    driver = ctypes.CDLL(DRIVER)
    assert driver.cuCtxSetLimit(0x7F, ctypes.c_size_t(1)) != 0
    assert float((torch.ones(8, device="cuda") * 2.0).sum()) == 16.0
