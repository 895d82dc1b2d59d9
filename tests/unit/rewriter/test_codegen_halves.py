"""Half precision in C++: stored in 16 bits, computed in float32, rounded as torch rounds."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kopt.actors.rewriter.codegen import Schedule, fuse
from kopt.actors.rewriter.codegen.check import loaded, module_source, run_fused

HALVES = (torch.float16, torch.bfloat16)
FUNCTIONS = {
    "element_wise": lambda x: F.silu(x * 1.5) + 0.25,
    "softmax": lambda x: (x * 2).softmax(-1),
    "over_rows": lambda x: (x * 0.5).sum(0),
    "variance": lambda x: (x + 1).var(1),
    "scan": lambda x: (x * 0.1).cumsum(1),
    "extreme": lambda x: (x * 2).amax(1),
    "float32_result": lambda x: x.float().exp().sum(1),
}


class Wrapped(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(*args)


@pytest.fixture(autouse=True)
def _builds(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("KOPT_BUILD_DIR", str(tmp_path))


def fused(function, x, folder: Path, **schedule):
    with torch.no_grad():
        graph = torch.export.export(Wrapped(function), (x,), strict=False).graph_module
    kernels = fuse(graph, device="cpu", schedule=Schedule(**schedule))
    assert kernels
    module = loaded(module_source(kernels), name="halves", folder=folder)
    return run_fused(graph, [x], kernels, module=module)[0]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_precision_is_as_near_to_float64_as_its_rounding_allows(name, dtype, tmp_path):
    torch.manual_seed(0)
    x = torch.randn(37, 517).to(dtype)
    found = fused(FUNCTIONS[name], x, tmp_path)
    expected = FUNCTIONS[name](x.double())
    assert found.dtype == FUNCTIONS[name](x).dtype
    unit = torch.finfo(found.dtype).eps
    torch.testing.assert_close(found.double(), expected.double(), rtol=max(unit, 1e-5), atol=1e-5)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("streaming", [True, False])
def test_every_number_there_is_survives_the_way_through_float32(dtype, streaming, tmp_path):
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    found = fused(lambda x: (x * 1.0) * 1.0, every, tmp_path, cpu_streaming=streaming)
    assert torch.equal(found.isnan(), every.isnan())
    kept = ~every.isnan()
    assert torch.equal(found[kept].view(torch.int16), every[kept].view(torch.int16))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_float32_is_rounded_to_half_precision_as_torch_rounds(dtype, tmp_path):
    torch.manual_seed(0)
    x = torch.cat([torch.randn(4096) * 10.0**k for k in range(-9, 6)])
    ties = torch.arange(2048.0) * 2**-11 + 1 + 2**-12
    x = torch.cat([x, ties, torch.tensor([65519.9, 65520.0, 1e30, -1e30, 6e-8, 2.9e-8, 0.0, -0.0])])
    found = fused(lambda x: (x * 1.0 * 1.0).to(dtype), x, tmp_path)
    assert torch.equal(found.view(torch.int16), x.to(dtype).view(torch.int16))
