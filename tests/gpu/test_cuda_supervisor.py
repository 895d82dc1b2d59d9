"""Verdicts on a real GPU: right, wrong, faulting, hanging and cheating candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from kopt.actors.builder import nothing_to_build
from kopt.actors.config import EvaluateConfig, TimeoutConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.candidate import Candidate, Language
from kopt.evaluation import Evaluation
from kopt.problem import Problem

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.relu(x * self.scale + 1.0)


def get_inputs():
    return [torch.randn(4096, 1024)]


def get_init_inputs():
    return [1024]
"""

HEAD = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def affine_relu(x, scale, out, width: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    value = tl.load(x + row * width + column) * tl.load(scale + column) + OFFSET
    tl.store(out + row * width + column + SHIFT, tl.maximum(value, 0.0))


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        out = torch.empty_like(x)
        BEFORE
        affine_relu[(x.shape[0],)](x, self.scale, out, x.shape[1], BLOCK=x.shape[1])
        return out
"""

Judge = Callable[..., Evaluation]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    cache = tmp_path_factory.mktemp("cache")
    config = EvaluateConfig(
        secret=1,
        compile=False,
        timeouts=TimeoutConfig(correctness_s=20.0, timing_s=30.0),
    )
    worker = DeviceWorker(config, "cuda", 0, str(cache))
    problem = Problem(name="affine_relu", source=PROBLEM)

    def run(source: str, language: Language = "triton") -> Evaluation:
        candidate = Candidate(source=source, language=language)
        return worker.evaluate(problem, candidate, nothing_to_build(candidate, cache_dir=cache))

    yield run
    worker.close()


def kernel(*, offset: str = "1.0", shift: str = "0", before: str = "pass") -> str:
    source = HEAD.replace("OFFSET", offset).replace("SHIFT", shift).replace("BEFORE", before)
    return source


def test_a_right_triton_kernel_is_correct_and_faster_than_eager(judge: Judge) -> None:
    evaluation = judge(kernel())
    assert evaluation.verdict.kind == "correct", evaluation.verdict.reason
    assert evaluation.verdict.timing.speedup_ci[0] > 1.2


def test_the_reference_against_itself_is_neither_faster_nor_slower(judge: Judge) -> None:
    evaluation = judge(PROBLEM.replace("class Model(", "class ModelNew("), language="torch")
    assert evaluation.verdict.kind == "correct", evaluation.verdict.reason
    assert evaluation.verdict.timing.speedup == pytest.approx(1.0, abs=0.02)


def test_a_wrong_kernel_is_incorrect(judge: Judge) -> None:
    assert judge(kernel(offset="1.001")).verdict.kind == "incorrect"


def test_an_illegal_address_crashes_its_candidate_alone(judge: Judge) -> None:
    assert judge(kernel(shift="(1 << 40)")).verdict.kind == "crashed"
    assert judge(kernel()).verdict.kind == "correct"


def test_a_hanging_candidate_times_out_alone(judge: Judge) -> None:
    assert judge(kernel(before="while True: pass")).verdict.kind == "timed_out"
    assert judge(kernel()).verdict.kind == "correct"


def test_more_memory_than_the_device_has_is_a_crash(judge: Judge) -> None:
    hungry = kernel(before="torch.empty(1 << 42, device='cuda')")
    evaluation = judge(hungry)
    assert evaluation.verdict.kind == "crashed"
    assert "out of memory" in evaluation.verdict.reason.lower()


def test_work_on_a_stream_that_is_not_joined_is_found_out(judge: Judge) -> None:
    stray = kernel(before="side = torch.cuda.Stream()").replace(
        "        affine_relu[", "        with torch.cuda.stream(side):\n            affine_relu["
    )
    assert judge(stray).verdict.kind in ("incorrect", "cheated")


def test_an_answer_remembered_by_address_is_found_out(judge: Judge) -> None:
    memo = kernel(before="if x.data_ptr() in KEPT: return KEPT[x.data_ptr()]").replace(
        "        return out", "        KEPT[x.data_ptr()] = out\n        return out"
    )
    assert judge("KEPT = {}\n" + memo).verdict.kind in ("incorrect", "cheated")
