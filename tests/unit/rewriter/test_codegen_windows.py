"""Pools and convolutions of single channels in generated kernels. Run as a script (by the tests),
this file prints the errors of interpreted kernels as JSON."""

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
from kopt.actors.rewriter.graph import fake_mode
from kopt.actors.rewriter.normalise import normalise

pytest.importorskip("triton")

IMAGE = (2, 3, 10, 12)
CASES = {
    # name: (function, shapes of its inputs)
    "past_the_edge": (lambda x: F.max_pool2d(x, 4, 1, 1), [IMAGE]),
    "dilated": (lambda x: F.max_pool1d(x, 8, 1, 4, 3), [(2, 3, 60)]),
    "in_space": (lambda x: F.max_pool3d(x, 3, 2, 1, 3), [(2, 2, 11, 12, 13)]),
    "cut_off": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), [IMAGE]),
    "zeros_count": (lambda x: F.avg_pool1d(x, 8, 1, 4), [(2, 3, 60)]),
    "mean_in_space": (lambda x: F.avg_pool3d(x, 3, 2, 1), [(2, 2, 8, 9, 10)]),
    "of_computed": (lambda x: F.gelu(F.max_pool2d(torch.relu(x) * 2, 2)).sum(1), [IMAGE]),
    "of_a_pool": (lambda x: F.avg_pool2d(torch.tanh(F.avg_pool2d(x, 2)), 2) * 2, [(2, 3, 12, 12)]),
    "reduced": (lambda x: F.avg_pool2d(x, 3, 1, 1).mean((2, 3)), [IMAGE]),
    "depthwise": (
        lambda x, w, b: torch.relu(F.conv2d(x, w, b, stride=2, padding=1, groups=3)),
        [IMAGE, (3, 1, 3, 5), (3,)],
    ),
    "depthwise_column": (lambda x, w: F.conv2d(x, w, groups=3, dilation=2), [IMAGE, (3, 1, 3, 1)]),
    "depthwise_line": (
        lambda x, w: F.conv1d(x, w, groups=3, padding=2) * 2,
        [(2, 3, 33), (3, 1, 5)],
    ),
}
LEFT = {
    "overlapping, of computed values": lambda x: F.max_pool2d(torch.relu(x) * 2, 3, 1),
    "past the edge of computed values": lambda x: F.max_pool2d(torch.relu(x) * 2, 2, 2, 1),
    "counting only what is inside": lambda x: F.avg_pool2d(
        x, 3, 1, 1, count_include_pad=False
    ).tanh(),
    "averages cut off": lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True).tanh(),
    "many elements": lambda x: F.avg_pool2d(x, 9, 1).tanh(),
}


class Wrapped(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def graph_of(function, shapes):
    inputs = tuple(torch.randn(shape) for shape in shapes)
    with torch.no_grad():
        graph = torch.export.export(Wrapped(function), inputs, strict=False).graph_module
    normalise(graph, fake_mode(graph))
    return graph


def taken(function, shapes, *, device="cuda"):
    kernels = fuse(graph_of(function, shapes), device=device, schedule=Schedule())
    return {str(node.target).split(".")[1] for kernel in kernels for node in kernel.nodes}


def interpreted(name, folder):
    function, shapes = CASES[name]
    graph = graph_of(function, shapes)
    [kernel] = fuse(graph, device="cuda", schedule=Schedule())
    torch.manual_seed(0)
    inputs = [torch.randn(shape) for shape in shapes]
    module = loaded(module_source([kernel]), name=name, folder=folder)
    [result] = run_fused(graph, inputs, [kernel], module=module)
    exact = function(*(each.double() for each in inputs))
    assert result.shape == exact.shape
    return (result.double() - exact).abs().max().item() / exact.abs().max().item() / 1.2e-7


@pytest.mark.parametrize("name", LEFT)
def test_windows_that_would_be_computed_again_or_count_otherwise_are_left_to_torch(name) -> None:
    assert not taken(LEFT[name], [IMAGE]) & {"max_pool2d", "avg_pool2d"}


def test_convolutions_over_several_channels_are_left_to_the_library() -> None:
    assert "conv2d" not in taken(lambda x, w: F.conv2d(x, w).tanh(), [IMAGE, (4, 3, 3, 3)])
    assert "conv2d" not in taken(
        lambda x, w: F.conv2d(x, w, groups=3).tanh(), [IMAGE, (6, 1, 3, 3)]
    )
    assert "conv2d" in taken(lambda x, w: F.conv2d(x, w, groups=3).tanh(), [IMAGE, (3, 1, 3, 3)])


def test_on_a_cpu_pools_stay_library_calls() -> None:
    found = taken(lambda x: F.max_pool2d(torch.tanh(x) * 2, 2), [IMAGE], device="cpu")
    assert found == {"tanh", "mul"}


@pytest.mark.parametrize("name", ["past_the_edge", "of_computed", "depthwise"])
def test_windows_compile_for_sm_90(name: str, tmp_path: Path) -> None:
    [kernel] = fuse(graph_of(*CASES[name]), device="cuda", schedule=Schedule())
    [made] = compile_only(kernel, folder=tmp_path)
    assert ".target sm_90" in made.ptx


@pytest.mark.slow
def test_interpreted_windows_agree_with_float64() -> None:
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, env=env, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    errors = json.loads(done.stdout)
    assert set(errors) == set(CASES)
    assert {case: error for case, error in errors.items() if error > 8} == {}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        found = {name: interpreted(name, Path(scratch)) for name in CASES}
    sys.stdout.write(json.dumps(found))
