"""Whose work a candidate's call is, on a GPU: CUPTI's record in the candidate's own child."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest

from kopt.actors.builder import Builder
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.candidate import Candidate, Language
from kopt.evaluation import Check, Evaluation, Track
from kopt.problem import Problem

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

CONFIG = EvaluateConfig(
    secret=20_240_607,
    compile=False,
    trials=1,
    timeouts=TimeoutConfig(load_s=120.0, correctness_s=30.0, timing_s=60.0, reference_s=120.0),
    timing=TimingConfig(min_pairs=4, max_pairs=8),
)
SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.relu(a @ b)


def get_inputs():
    return [torch.randn(2048, 2048), torch.randn(2048, 2048)]
"""
PROBLEM = Problem(name="product_relu", source=SOURCE)
TRITON = """
import torch
import triton
import triton.language as tl


@triton.jit
def clip(x, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < count)
    tl.store(x + at, tl.maximum(value, 0.0), mask=at < count)


@triton.jit
def gemm_kernel(a, b, out, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, n, BLOCK):
        inner = first + tl.arange(0, BLOCK)
        left = tl.load(a + rows[:, None] * n + inner[None, :])
        upper = tl.load(b + inner[:, None] * n + columns[None, :])
        total += tl.dot(left, upper, input_precision="ieee")
    tl.store(out + rows[:, None] * n + columns[None, :], tl.maximum(total, 0.0))
"""
OWN = """
out = torch.empty_like(a)
n = a.shape[0]
gemm_kernel[(n // 32, n // 32)](a, b, out, n, BLOCK=32)
return out
"""
MIXED = """
out = a @ b
clip[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)
return out
"""
SAME = "return torch.relu(a @ b)"
IN_PLACE = "return (a @ b).relu_()"
GRAPHED = """
if not hasattr(self, "graph"):
    self.given = [a.clone(), b.clone()]
    torch.relu(a @ b)
    torch.cuda.synchronize()
    self.graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(self.graph):
        self.out = torch.relu(self.given[0] @ self.given[1])
self.given[0].copy_(a)
self.given[1].copy_(b)
self.graph.replay()
return self.out.clone()
"""
COMPILED = """
if "quick" not in self.__dict__:
    self.__dict__["quick"] = torch.compile(lambda x, y: torch.sin(torch.relu(x @ y)) * 0 + \\
                                           torch.relu(x @ y))
return self.__dict__["quick"](a, b)
"""
CUDA = '''
import torch
from torch.utils.cpp_extension import load_inline

TEXT = """
#include <torch/extension.h>
namespace mine {
template <typename T> __global__ void multiply(const T *a, const T *b, T *out, long n) {
    const long row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    T total = 0;
    for (long at = 0; at < n; ++at) total += a[row * n + at] * b[at * n + column];
    out[row * n + column] = total > 0 ? total : 0;
}
}
torch::Tensor apply(torch::Tensor a, torch::Tensor b) {
    auto out = torch::empty_like(a);
    const long n = a.size(0);
    mine::multiply<float><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
"""
DECLARED = "torch::Tensor apply(torch::Tensor a, torch::Tensor b);"
module = load_inline("product_relu", cpp_sources=[DECLARED], cuda_sources=[TEXT],
                     functions=["apply"])
'''


@pytest.fixture(scope="module")
def judge_on(new_cache) -> Iterator[Callable[..., Callable[..., Evaluation]]]:
    """Returns a function: track to the evaluation of a forward's body on it."""
    cache_dir = str(new_cache())
    workers: dict[Track, DeviceWorker] = {}
    builder = Builder(CONFIG, "cuda", cache_dir)

    def on(track: Track = "anything") -> Callable[..., Evaluation]:
        if track not in workers:
            config = CONFIG.model_copy(update={"track": track})
            workers[track] = DeviceWorker(config, "cuda", 0, cache_dir)

        def evaluate(body: str, *, before: str = TRITON, language: Language = "triton"):
            lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
            head = f"import torch\nfrom torch import nn\n{before}\n\nclass ModelNew(nn.Module):\n"
            text = f"{head}    def forward(self, a, b):\n{lines}"
            candidate = Candidate(source=text, language=language)
            built = builder.build(PROBLEM, candidate)
            assert built.verdict is None, built.verdict
            return workers[track].evaluate(PROBLEM, candidate, built)

        return evaluate

    yield on
    builder.close()
    for worker in workers.values():
        worker.close()


def check(made: Evaluation, name: str) -> Check:
    return next(each for each in made.checks if each.name == name)


def share(made: Evaluation) -> float:
    assert made.verdict.kind == "correct", made.verdict.reason
    assert made.library_share is not None, check(made, "provenance").detail
    return made.library_share


def test_a_triton_kernel_has_all_of_the_time_whatever_it_is_called(judge_on) -> None:
    made = judge_on()(OWN)
    assert share(made) < 0.02
    assert check(made, "provenance").detail.startswith("own ")
    assert check(made, "fallback").passed


def test_an_epilogue_of_its_own_beside_a_librarys_product_has_a_little(judge_on) -> None:
    # 2 * 2048^3 flops at 60 TFLOP/s are 290 us; 32 MiB through memory are some 10 us.
    made = judge_on()(MIXED)
    assert 0.8 < share(made) < 1.0
    assert "(own)" in check(made, "provenance").detail
    # However short the relu: it is its own kernel that does it, and the reference's does not run.
    assert check(made, "fallback").passed
    assert "kernels of its own run, and not" in check(made, "fallback").detail


def test_the_references_own_path_is_a_fall_back(judge_on) -> None:
    made = judge_on()(SAME, before="", language="torch")
    assert share(made) == 1.0
    assert not check(made, "fallback").passed


def test_a_record_costs_less_than_a_second(judge_on) -> None:
    judge_on()(SAME + "  # the reference is recorded with its first candidate", before="")
    made = judge_on()(IN_PLACE, before="", language="torch")
    assert made.timeline_s["profiled"] < 1.0


def test_kernels_of_a_graph_are_in_the_record(judge_on) -> None:
    made = judge_on()(GRAPHED, before="", language="torch")
    assert share(made) == 1.0
    assert "gemm" in check(made, "provenance").detail or "nvjet" in check(made, "provenance").detail


def test_what_torch_compiles_is_torchs(judge_on) -> None:
    made = judge_on()(COMPILED, before="", language="torch")
    assert share(made) == 1.0
    assert "triton_" in check(made, "provenance").detail


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_a_template_in_an_extension_is_its_own(judge_on) -> None:
    made = judge_on()("return module.apply(a, b)", before=CUDA, language="cuda")
    assert share(made) < 0.02


def test_the_baseline_is_as_fast_after_a_record_as_before(judge_on) -> None:
    # The reference is recorded in a process of its own: CUPTI slows launches for good.
    first = judge_on()(SAME + "  # before", before="", language="torch").verdict
    last = judge_on()(SAME + "  # after", before="", language="torch").verdict
    assert 0.8 < last.timing.baseline_us / first.timing.baseline_us < 1.25


def test_on_the_track_kernels_own_work_is_correct(judge_on) -> None:
    made = judge_on("kernels")(OWN)
    assert share(made) < 0.02
    assert check(made, "track").passed


@pytest.mark.parametrize("body", [SAME, MIXED], ids=["the library alone", "an epilogue"])
def test_on_the_track_kernels_a_librarys_work_does_not_count(judge_on, body) -> None:
    made = judge_on("kernels")(body)
    assert made.verdict.kind == "incorrect", made.verdict.reason
    assert made.verdict.check == "track"
