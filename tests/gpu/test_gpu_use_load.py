"""kopt.load of a Triton kernel: in a model, under torch.compile, in a CUDA graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kopt
from kopt.data.best import write_best
from kopt.data.fold import fold
from kopt.data.journal import Journal, read_events
from kopt.data.rundir import RunDir
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock, correct, source_candidate
from kopt.testing.sample_journal import write_search

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

REFERENCE = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.relu(x + self.bias)


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return [1024]
"""
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_relu(x, bias, out, width, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    value = tl.load(x + row * width + column) + tl.load(bias + column)
    tl.store(out + row * width + column, tl.maximum(value, 0.0))


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        out = torch.empty_like(x)
        add_relu[(x.shape[0],)](x, self.bias, out, x.shape[1], BLOCK=1024)
        return out
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose best kernel is in Triton, judged on a GPU."""
    problem = Problem(name="mine/bias", source=REFERENCE)
    folder = RunDir(tmp_path)
    folder.keep_problem(problem)
    with Journal(tmp_path, run="run", clock=ManualClock()) as sink:
        slot = (source_candidate(KERNEL), correct(2.0))
        write_search(sink, problem=problem, seed=0, expansions=[[slot]])
    write_best(folder, fold(read_events(tmp_path)))
    path = tmp_path / "best" / "mine-bias" / "rank1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "device": "a GPU"}))
    return tmp_path


@pytest.mark.parametrize("as_op", [False, True])
def test_a_triton_kernel_takes_the_place_of_a_module(run: Path, *, as_op: bool) -> None:
    part: dict[str, type] = {}
    exec(REFERENCE, part)
    like = part["Model"](1024).cuda()
    inputs = torch.randn(512, 1024, device="cuda")
    with torch.no_grad():
        module = kopt.load(run, like=like, as_op=as_op)
        torch.testing.assert_close(module(inputs), like(inputs))


def test_torch_compile_takes_it_without_a_graph_break(run: Path) -> None:
    module = kopt.load(run, as_op=True)
    inputs = torch.randn(512, 1024, device="cuda")
    compiled = torch.compile(lambda x: module(x) * 2, fullgraph=True)
    with torch.no_grad():
        expected = torch.relu(inputs + module.kernel.bias) * 2
        torch.testing.assert_close(compiled(inputs), expected)


def test_a_cuda_graph_replays_it(run: Path) -> None:
    module = kopt.load(run, as_op=True)
    inputs = torch.randn(512, 1024, device="cuda")
    with torch.no_grad():
        module(inputs)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = module(inputs)
        inputs.fill_(1.0)
        graph.replay()
        torch.testing.assert_close(output, torch.relu(inputs + module.kernel.bias))
