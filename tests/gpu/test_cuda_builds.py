"""CUDA extensions through the light toolchain: built without the GPU, right on it, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.actors.build.toolchain import compiler_environment, provide_toolchain
from kopt.actors.builder import Builder
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.candidate import Candidate
from kopt.problem import Problem

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

CONFIG = EvaluateConfig(
    secret=20_240_607,
    compile=False,
    trials=1,
    timeouts=TimeoutConfig(build_s=300.0, load_s=60.0, correctness_s=30.0, reference_s=120.0),
    timing=TimingConfig(min_pairs=4, max_pairs=8),
)
PROBLEM = Problem(
    name="rows",
    source="""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn(2048, 2048)]
""",
)
SOURCE = """
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

module = load_inline(
    name="rows_ext",
    cpp_sources="torch::Tensor rows(torch::Tensor x);",
    cuda_sources='''
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
template <typename scalar_t>
__global__ void kernel(const scalar_t* a, scalar_t* b, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] > scalar_t(0) ? a[i] * scalar_t(2) : scalar_t(0);
}
torch::Tensor rows(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "expected a CUDA tensor, found one on ", x.device());
  const at::cuda::OptionalCUDAGuard guard(at::device_of(x));
  auto y = torch::empty_like(x);
  const int64_t n = x.numel();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rows", [&] {
    kernel<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
''',
    functions=["rows"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.rows(x)
"""


@pytest.fixture(scope="module")
def lanes(new_cache):
    """Returns a builder and a device worker with one cache."""
    cache_dir = new_cache()
    assert provide_toolchain(cache_dir) is None
    builder = Builder(CONFIG, "cuda", str(cache_dir))
    worker = DeviceWorker(CONFIG, "cuda", 0, str(cache_dir))
    yield builder, worker, cache_dir
    worker.close()
    builder.close()


def test_the_toolchain_knows_nvcc_and_the_architecture(lanes) -> None:
    environment = compiler_environment(lanes[2])
    assert environment["PYTORCH_NVCC"].endswith("/nvcc")
    assert environment["TORCH_CUDA_ARCH_LIST"]


def test_a_cuda_extension_is_built_light_within_seconds_and_is_correct(lanes) -> None:
    builder, worker, _ = lanes
    candidate = Candidate(source=SOURCE, language="cuda")
    built = builder.build(PROBLEM, candidate)
    assert built.verdict is None, built.verdict.reason
    marks = sorted(path.name for path in Path(built.build_dir).rglob("*.light"))
    assert marks == ["cuda.cuda.o.light", "main.o.light"]
    assert built.build_s < 20.0  # torch's own way: about a minute
    made = worker.evaluate(PROBLEM, candidate, built)
    assert made.verdict.kind == "correct", made.verdict.reason
    assert builder.build(PROBLEM, candidate).cached


def test_a_kernel_that_does_not_compile_is_reported_in_nvccs_own_words(lanes) -> None:
    source = SOURCE.replace("b[i] =", "b[i] = undeclared +")
    built = lanes[0].build(PROBLEM, Candidate(source=source, language="cuda"))
    assert built.verdict.kind == "compile_failed"
    assert '"undeclared" is undefined' in built.verdict.log
    assert "kopt_light" not in built.verdict.log
