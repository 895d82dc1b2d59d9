"""Triton kernels on a machine without a GPU: they compile for sm_90, and the interpreter's
results agree with float64. Run as a script (by the tests), this file prints those as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kopt.actors.rewriter.codegen import Schedule, fuse
from kopt.actors.rewriter.codegen.check import compile_only, loaded, module_source, run_fused

pytest.importorskip("triton")

LOOPED = Schedule(gpu_persistent=512)


def places(x: torch.Tensor, count: int) -> torch.Tensor:
    return torch.arange(count, device=x.device)


CASES = {
    # name: (function, shape of its one input, schedule)
    "chain": (lambda x: F.gelu(x) * F.silu(x) + torch.tanh(x), (5, 170), Schedule()),
    "chain2": (lambda x: F.mish(x) + F.elu(x) + F.softplus(x) + F.hardswish(x), (700,), Schedule()),
    "bias": (lambda x: torch.sigmoid(x + x[:, :1]) * x[0], (7, 33), Schedule()),
    "softmax": (lambda x: x.softmax(-1), (5, 33), Schedule()),
    "softmax_looped": (lambda x: x.softmax(-1), (3, 1025), LOOPED),
    "softmax_shared": (lambda x: x.softmax(-1), (1, 70_000), Schedule()),
    "softmax_over_rows": (lambda x: x.softmax(0), (33, 70), Schedule()),
    "softmax_over_many_rows": (lambda x: x.softmax(0), (130, 70), Schedule()),
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[1:]), (5, 1000), Schedule()),
    "group_norm": (lambda x: F.group_norm(x, 3), (2, 6, 5, 7), Schedule()),
    "log_softmax": (lambda x: F.log_softmax(x, -1), (5, 33), Schedule()),
    "logsumexp": (lambda x: x.logsumexp(1), (300, 33), Schedule()),
    "extremes": (lambda x: (*x.max(1), x.argmin(1), x.prod(1)), (5, 33), Schedule()),
    "variance": (lambda x: x.var(1), (3, 1025), LOOPED),
    "sum_over_rows": (lambda x: (x * x).sum(0), (20_000, 3), Schedule()),
    "whole": (lambda x: (x * 2).sum(), (70_001,), Schedule()),
    "frobenius": (lambda x: x / x.norm(), (7, 9000), Schedule()),
    "mse": (lambda x: F.mse_loss(x, x.flip(0) + 1), (70, 1000), Schedule()),
    "cross_entropy": (lambda x: F.cross_entropy(x, x.argmin(1)), (200, 33), Schedule()),
    "kl": (
        lambda x: F.kl_div(x.log_softmax(1), (x * 2).softmax(1), reduction="batchmean"),
        (200, 33),
        Schedule(),
    ),
    "cumsum": (lambda x: x.cumsum(1), (5, 100), Schedule()),
    "cumsum_looped": (lambda x: x.cumsum(1), (3, 5000), LOOPED),
    "cumsum_backwards": (lambda x: x.flip(1).cumsum(1).flip(1), (5, 100), Schedule()),
    "cumsum_over_rows": (lambda x: (x * 2).cumsum(0), (100, 70), Schedule()),
    "cumprod": (lambda x: (1 + x * 0.01).cumprod(1), (3, 1025), LOOPED),
    "softmax_in_pieces": (lambda x: x.softmax(-1), (3, 2048), LOOPED),
    "logsumexp_in_pieces": (lambda x: x.logsumexp(1), (3, 2048), LOOPED),
    "moments_in_one_walk": (lambda x: F.layer_norm(x + 100, x.shape[1:]), (3, 2048), LOOPED),
    "transposed": (lambda x: (x.t() * 2 + 1).softmax(-1), (33, 17), Schedule()),
    "causal": (
        lambda x: x.masked_fill(x.new_ones(33, 33) == x.new_ones(33, 33).triu(1), -1e9).softmax(-1),
        (4, 33, 33),
        Schedule(),
    ),
    "far_places_looped": (
        lambda x: torch.where(
            (places(x, 3)[:, None] - places(x, 1025)).abs() > 700, torch.zeros_like(x), x
        ).softmax(-1),
        (3, 1025),
        LOOPED,
    ),
    "numbered": (
        lambda x: (
            torch.where(places(x, 850).view(170, 5).t() > 40, torch.exp(x), 0.5)
            / torch.arange(1, 340, 2, device=x.device)
        ),
        (5, 170),
        Schedule(),
    ),
}
COMPILED_ONLY = {
    "libdevice": (lambda x: (torch.sin(x) + x.round()) ** 1.7, (700,), Schedule()),
    "fast": (lambda x: torch.sigmoid(x).softmax(-1), (256, 4096), Schedule(gpu_math="fast")),
    "half": (lambda x: F.gelu(x.half()).softmax(-1), (256, 4096), Schedule()),
    "bfloat16": (lambda x: (x.bfloat16() * 2).sum(1), (256, 4096), Schedule()),
    "double": (lambda x: F.gelu(x.double()).logsumexp(-1), (256, 40), Schedule()),
    "long_rows": (lambda x: F.layer_norm(x, x.shape[1:]), (4096, 40_000), Schedule()),
}


class Wrapped(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def written(function, shape, schedule):
    x = torch.empty(shape, device="meta")
    with torch.no_grad():
        graph = torch.export.export(Wrapped(function), (x,), strict=False).graph_module
    kernels = fuse(graph, device="cuda", schedule=schedule)
    assert kernels
    return graph, kernels


def interpreted(name: str, folder: Path) -> list[float]:
    """Return the error of each output as a multiple of what float32 allows at its scale."""
    function, shape, schedule = CASES[name]
    torch.manual_seed(0)
    x = torch.randn(shape)
    graph, kernels = written(function, shape, schedule)
    module = loaded(module_source(kernels), name=name, folder=folder)
    results = run_fused(graph, [x], kernels, module=module)
    truths = function(x.double())
    several = truths if isinstance(truths, tuple) else (truths,)
    errors = []
    for got, truth in zip(results, several, strict=True):
        assert got.shape == truth.shape
        scale = max(truth.double().abs().max().item(), 1e-3)
        errors.append((got.double() - truth.double()).abs().max().item() / scale / 1.2e-7)
    return errors


@pytest.mark.parametrize("name", [*CASES, *COMPILED_ONLY])
def test_every_kind_of_kernel_compiles_for_sm_90(name: str, tmp_path: Path) -> None:
    _, kernels = written(*{**CASES, **COMPILED_ONLY}[name])
    for kernel in kernels:
        for made in compile_only(kernel, folder=tmp_path):
            assert ".target sm_90" in made.ptx
            assert made.shared_bytes <= 227 * 1024


@pytest.mark.slow
def test_interpreted_kernels_agree_with_float64() -> None:
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, env=env, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    errors = json.loads(done.stdout)
    assert set(errors) == set(CASES)
    # Scans add thousands of numbers one after the other in the interpreter's float32; x + 100
    # loses a hundred times what float32 holds of x.
    limit = {name: 300 if name.startswith(("cum", "moments")) else 8 for name in CASES}
    wrong = {n: e for n, e in errors.items() if not all(v <= limit[n] for v in e)}
    assert not wrong


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        errors = {case: interpreted(case, Path(scratch)) for case in CASES}
    sys.stdout.write(json.dumps(errors))
