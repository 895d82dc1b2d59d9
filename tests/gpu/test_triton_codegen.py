"""Triton kernels on a GPU: right against float64, and not slower than what they replace."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kopt.actors.rewriter.codegen import Schedule, fuse, schedules
from kopt.actors.rewriter.codegen.check import loaded, module_source, run_fused
from kopt.actors.rewriter.graph import fake_mode
from kopt.actors.rewriter.normalise import normalise
from kopt.actors.rewriter.plan import Plan
from kopt.actors.rewriter.study import Study
from kopt.problem import Problem

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
    "max_pool": (lambda x: F.max_pool2d(x, 4, 1, 1), (3, 64, 65, 67)),
    "avg_pool": (lambda x: F.avg_pool3d(x, 3, 2, 1) * 2, (3, 8, 33, 34, 35)),
    "depthwise": (
        lambda x: F.conv2d(x, x[0, :, None, :3, :5], padding=1, groups=32).tanh(),
        (7, 32, 65, 67),
    ),
    "booleans": (lambda x: (x > 0) & (x < 1), (1000, 333)),
}


class Wrapped(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


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


@pytest.mark.parametrize("way", ["large", "small", "direct", "direct_small"])
@pytest.mark.parametrize(
    "shapes",
    [((1024, 4096), (2048, 4096), (2048,)), ((1000, 5000), (3001, 5000)), ((3, 700, 2000),) * 2],
    ids=["whole", "ragged", "batched"],
)
def test_products_by_three_tf32_products_are_as_exact_as_the_library(
    way, shapes, tmp_path: Path
) -> None:
    def function(x, w, *bias):
        return torch.bmm(x, w.mT) if x.dim() == 3 else F.linear(x, w, *bias)

    torch.manual_seed(0)
    # All positive: roundings towards zero would add up.
    inputs = [torch.rand(shape, device="cuda") for shape in shapes]
    with torch.no_grad():
        graph = torch.export.export(Wrapped(function), tuple(inputs), strict=False).graph_module
    normalise(graph, fake_mode(graph))
    kernels = fuse(graph, device="cuda", schedule=Schedule(gpu_product=way))
    if not kernels:
        pytest.skip("this tile is not worth it here")
    module = loaded(module_source(kernels), name="product", folder=tmp_path)
    [got] = run_fused(graph, inputs, kernels, module=module)
    exact = function(*(each.double() for each in inputs))
    error = (got.double() - exact).abs().max()
    assert error <= RHO_LIMIT * (function(*inputs).double() - exact).abs().max()


REPLAYED = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU()) for _ in range(8))
        )

    def forward(self, x, y):
        return self.layers(x + y), y * 2


def get_inputs():
    return [torch.rand(32, 64), torch.rand(32, 64)]
"""


@pytest.mark.parametrize("compiled", [False, True])
def test_a_replayed_graph_follows_inputs_weights_and_statistics(compiled, tmp_path: Path) -> None:
    problem = Problem(name="many launches", source=REPLAYED)
    study = Study(problem, mode="train", device="cuda", languages=("torch", "triton"))
    written = study.written(Plan(graphed=True, compiled=compiled))
    old = loaded(REPLAYED, name="reference", folder=tmp_path).Model().cuda()
    candidate = loaded(written.source, name="candidate", folder=tmp_path)
    sys.modules["candidate"] = candidate  # torch.compile looks its functions' globals up there
    new = candidate.ModelNew().cuda()
    new.load_state_dict(old.state_dict())
    results = []
    with torch.no_grad():
        for step in range(4):
            if step == 2:
                for model in (old, new):
                    model.layers[0][0].weight.mul_(0.5)
            if step == 3:  # in another place
                for model in (old, new):
                    model.layers[1][0].weight = nn.Parameter(model.layers[1][0].weight * 2)
            inputs = [torch.rand(32, 64, device="cuda") for _ in range(2)]
            results.append((old(*inputs), new(*inputs)))
    for wanted, found in results:  # all alive at once
        for one, other in zip(wanted, found, strict=True):
            torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)
    for name, held in old.state_dict().items():
        torch.testing.assert_close(new.state_dict()[name], held, rtol=1e-4, atol=1e-5)
