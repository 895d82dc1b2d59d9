"""Triton candidates that were compiled ahead: the device lane compiles nothing, and is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kopt.actors.build.gpu_facts import gpu_of_node
from kopt.actors.build.triton_order import REPORT
from kopt.actors.builder import Builder, nothing_to_build
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.candidate import Candidate
from kopt.problem import Problem

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = [pytest.mark.gpu, pytest.mark.slow]
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

CONFIG = EvaluateConfig(
    secret=20_240_607,
    compile=False,
    trials=1,
    timeouts=TimeoutConfig(build_s=300.0, load_s=60.0, correctness_s=60.0, reference_s=120.0),
    timing=TimingConfig(min_pairs=4, max_pairs=8),
)
PROBLEM = Problem(
    name="rows",
    source="""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 512)

    def forward(self, x):
        return torch.relu(self.linear(x)) * 2.0


def get_inputs():
    return [torch.randn(2048, 1024)]


def get_init_inputs():
    return [1024]
""",
)
SOURCE = """
import torch
import triton
import triton.language as tl
from torch import nn

found = []
triton.knobs.compilation.listener = lambda **facts: found.append(facts["cache_hit"])


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (256, 512) for w in (4, 8)],
    key=["n"],
)
@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2.0, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 512)

    def forward(self, x):
        x = self.linear(x)
        y, z, n = torch.empty_like(x), torch.empty_like(x), x.numel()
        relu[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
        twice[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](y, z, n)
        # AFTER
        return z
"""
COMPILED = "if not all(found): raise RuntimeError(f'the device compiled {found.count(False)}')"


@pytest.fixture(scope="module")
def lanes(new_cache):
    """Returns a builder and a device worker with one cache."""
    cache_dir = new_cache()
    builder = Builder(CONFIG, "cuda", str(cache_dir))
    worker = DeviceWorker(CONFIG, "cuda", 0, str(cache_dir))
    yield builder, worker, cache_dir
    worker.close()
    builder.close()


def test_the_driver_says_which_gpu_without_a_context() -> None:
    facts = gpu_of_node()
    properties = torch.cuda.get_device_properties(0)
    assert facts is not None
    assert (facts.name, facts.major, facts.minor) == (
        properties.name,
        properties.major,
        properties.minor,
    )
    assert facts.num_sms == properties.multi_processor_count
    assert facts.block_shared_bytes == properties.shared_memory_per_block_optin


def test_the_device_compiles_nothing_and_the_candidate_is_correct(lanes) -> None:
    builder, worker, _ = lanes
    candidate = Candidate(source=SOURCE.replace("# AFTER", COMPILED), language="triton")
    built = builder.build(PROBLEM, candidate)
    report = json.loads((Path(built.build_dir) / REPORT).read_text())
    assert (len(report["compiled"]), report["failed"]) == (5, [])
    made = worker.evaluate(PROBLEM, candidate, built)
    assert made.verdict.kind == "correct", made.verdict.reason


def test_without_the_build_lane_the_same_candidate_compiles_on_the_device(lanes) -> None:
    _, worker, cache_dir = lanes
    candidate = Candidate(source=SOURCE.replace("# AFTER", f"{COMPILED}  #"), language="triton")
    built = nothing_to_build(candidate, cache_dir=cache_dir)
    made = worker.evaluate(PROBLEM, candidate, built)
    assert "the device compiled 5" in made.verdict.log


def test_launchers_are_built_ahead_too(lanes) -> None:
    builder, worker, _ = lanes
    broken = (
        "import os\nif os.environ.get('CUDA_VISIBLE_DEVICES') != '': os.environ['CC'] = 'false'"
    )
    candidate = Candidate(source=f"{broken}\n{SOURCE}", language="triton")
    made = worker.evaluate(PROBLEM, candidate, builder.build(PROBLEM, candidate))
    assert made.verdict.kind == "correct", made.verdict.reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tl.maximum(", "tl.nonesuch("),
        ("# AFTER", "z = z * z.max().item() / z.max().item()"),
        ("* 2.0, mask", "* 3.0, mask"),
    ],
)
def test_verdicts_are_the_same_with_and_without_the_build_lane(lanes, old: str, new: str) -> None:
    builder, worker, cache_dir = lanes
    candidate = Candidate(source=SOURCE.replace(old, new), language="triton")
    ahead = worker.evaluate(PROBLEM, candidate, builder.build(PROBLEM, candidate))
    nothing = nothing_to_build(candidate, cache_dir=cache_dir)
    stock = worker.evaluate(PROBLEM, candidate, nothing)
    assert ahead.verdict.kind == stock.verdict.kind
