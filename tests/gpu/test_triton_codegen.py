"""Triton kernels on a GPU: right against float64, and not slower than what they replace."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kopt.actors.rewriter.codegen import Schedule, fuse, schedules
from kopt.actors.rewriter.codegen.check import loaded, module_source, run_fused

pytestmark = pytest.mark.gpu
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

RHO_LIMIT = 10.0
ROUNDING = 3e-7

CASES = {
    "chain": (lambda x: F.gelu(x) * F.silu(x) + torch.tanh(x), (513, 1025)),
    "softmax": (lambda x: x.softmax(-1), (257, 1000)),
    "softmax_long": (lambda x: x.softmax(-1), (7, 100_001)),
    "softmax_over_rows": (lambda x: x.softmax(0), (1000, 700)),
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[1:]), (257, 3000)),
    "layer_norm_long": (lambda x: F.layer_norm(x, x.shape[1:]), (300, 40_000)),
    "group_norm": (lambda x: F.group_norm(x, 8), (5, 64, 33, 31)),
    "rms_over_channels": (
        lambda x: x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5),
        (5, 64, 33, 31),
    ),
    "logsumexp": (lambda x: x.logsumexp(1), (1000, 333)),
    "mse": (lambda x: F.mse_loss(x, x.flip(0) + 1), (1000, 3333)),
    "cross_entropy": (lambda x: F.cross_entropy(x, x.argmin(1)), (5000, 33)),
    "frobenius": (lambda x: x / x.norm(), (1000, 3333)),
    "sum_over_rows": (lambda x: (x * x).sum(0), (50_000, 33)),
    "max": (lambda x: x.max(1), (1000, 333)),
    "cumsum": (lambda x: x.cumsum(1), (100, 5000)),
    "cumsum_long": (lambda x: x.cumsum(1), (10, 100_000)),
    "libdevice": (lambda x: (torch.sin(x).abs() + 1) ** 1.7 + x.round(), (1000, 333)),
    "booleans": (lambda x: (x > 0) & (x < 1), (1000, 333)),
}


class Wrapped(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def graph_of(function, x):
    with torch.no_grad():
        return torch.export.export(Wrapped(function), (x,), strict=False).graph_module


@pytest.mark.parametrize("name", CASES)
def test_results_are_as_near_to_float64_as_torch_is(name: str, tmp_path: Path) -> None:
    function, shape = CASES[name]
    torch.manual_seed(0)
    x = torch.randn(shape, device="cuda")
    graph = graph_of(function, x)
    own, truth = function(x), function(x.double())
    for number, schedule in enumerate(schedules(graph, "cuda")):
        kernels = fuse(graph, device="cuda", schedule=schedule)
        module = loaded(module_source(kernels), name=f"{name}{number}", folder=tmp_path)
        results = run_fused(graph, [x], kernels, module=module)
        owns = own if isinstance(own, tuple) else (own,)
        truths = truth if isinstance(truth, tuple) else (truth,)
        for got, torch_own, exact in zip(results, owns, truths, strict=True):
            assert got.shape == torch_own.shape
            assert got.dtype == torch_own.dtype
            error = (got.double() - exact.double()).abs().max().item()
            torch_error = (torch_own.double() - exact.double()).abs().max().item()
            scale = exact.double().abs().max().item()
            slack = 30 if schedule.gpu_math == "fast" else 1
            assert error <= slack * max(RHO_LIMIT * torch_error, ROUNDING * scale), schedule


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_as_good_as_torch(dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(257, 1000, device="cuda", dtype=dtype)

    def function(x):
        return F.gelu(x).softmax(-1)

    graph = graph_of(function, x)
    kernels = fuse(graph, device="cuda", schedule=Schedule())
    module = loaded(module_source(kernels), name="half", folder=tmp_path)
    [got] = run_fused(graph, [x], kernels, module=module)
    truth = function(x.double())
    error = (got.double() - truth).abs().max().item()
    assert error <= 2 * (function(x).double() - truth).abs().max().item()


def test_two_runs_give_the_same_bits(tmp_path: Path) -> None:
    x = torch.randn(1000, 3333, device="cuda")
    graph = graph_of(lambda x: F.mse_loss(x, x.flip(0) + 1), x)
    kernels = fuse(graph, device="cuda", schedule=Schedule())
    module = loaded(module_source(kernels), name="twice", folder=tmp_path)
    first, second = (run_fused(graph, [x], kernels, module=module)[0] for _ in range(2))
    assert torch.equal(first, second)
