"""The compiler loaded ahead on a GPU: no device is touched, and children find it and their GPU."""

from __future__ import annotations

import time

import pytest

from kopt.actors.build.gpu_facts import gpu_of_node
from kopt.actors.config import EvaluateConfig, TimingConfig
from kopt.actors.supervisor.supervisor import Supervisor
from kopt.actors.supervisor.supply import Supply
from kopt.candidate import Candidate
from kopt.problem import Problem

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

CONFIG = EvaluateConfig(
    secret=11, compile=True, trials=1, timing=TimingConfig(min_pairs=4, max_pairs=4)
)
SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return (torch.relu(x) * 2).sum(dim=1)


def get_inputs():
    return [torch.rand(1024, 1024)]
"""
SOON_S = 1.0
"""Importing the compiler takes five seconds on an idle host; finding it takes none."""


@pytest.fixture(scope="module")
def supervisor(new_cache):
    cache_dir = new_cache()
    supply = Supply(in_flight=3, warm_children=2)
    made = Supervisor(CONFIG, device="cuda", cache_dir=cache_dir, supply=supply)
    yield made, cache_dir
    made.close()


def test_the_zygote_loads_the_compiler_and_is_of_use(supervisor) -> None:
    judge, _ = supervisor
    assert gpu_of_node().arch == judge.target.arch
    preload = judge._bench.zygote._preload
    assert preload.compiles
    assert not preload.is_lean  # what it loaded spoilt no fork


def test_a_child_finds_the_compiler_loaded_and_uses_its_gpu(supervisor) -> None:
    judge, _ = supervisor
    child = judge._bench.child(Problem(name="rows", source=SOURCE))
    source = (
        "import sys\n"
        "assert 'torch._inductor.compile_fx' in sys.modules\n"
        "import torch._inductor.compile_fx\n"
        "from torch.utils._triton import has_triton\n"
        "assert has_triton()\n"
        "assert torch.cuda.get_device_properties(0).multi_processor_count > 1\n"
    )
    try:
        began_s = time.monotonic()
        child.ask("import", timeout_s=30.0, source=source, name="reference")
        assert time.monotonic() - began_s < SOON_S
    finally:
        child.end()


def test_a_compiled_baseline_is_measured(supervisor) -> None:
    judge, cache_dir = supervisor
    problem = Problem(name="rows", source=SOURCE)
    judge.take_up(problem)
    body = SOURCE.replace("class Model(", "class ModelNew(").replace("* 2", "* 4 * 0.5")
    candidate = Candidate(source=body, language="torch")
    build_dir = cache_dir / "build" / candidate.candidate_id
    build_dir.mkdir(parents=True, exist_ok=True)  # a second try finds it
    made = judge.evaluate(problem, candidate, build_dir=build_dir)
    assert made.verdict.kind == "correct", made.verdict.reason
    assert made.verdict.timing.compile_us is not None, made.checks
