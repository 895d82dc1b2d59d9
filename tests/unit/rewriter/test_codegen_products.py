"""Float32 products by three tf32 products each. Run as a script (by the tests), this file prints
the errors of interpreted kernels as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from kopt.actors.rewriter.codegen import Schedule, fuse, schedules
from kopt.actors.rewriter.codegen.check import compile_only, loaded, module_source, run_fused
from kopt.actors.rewriter.codegen.gpu import product

pytest.importorskip("triton")

aten = torch.ops.aten
SMALL = {"large": 64, "small": 64, "direct": 64, "direct_small": 64}


def graph_of(target, *shapes, turned=(), dtype=torch.float32):
    """Return a graph of one call; tensors named in `turned` are read through a transposition."""
    graph, mode = fx.Graph(), FakeTensorMode()
    nodes = []
    for number, shape in enumerate(shapes):
        node = graph.placeholder(f"in{number}")
        with mode:
            node.meta["val"] = torch.empty(shape, dtype=dtype)
        if number in turned:
            dims = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
            view = graph.call_function(aten.permute.default, (node, dims))
            with mode:
                view.meta["val"] = node.meta["val"].permute(dims)
            node = view
        nodes.append(node)
    made = graph.call_function(target, tuple(nodes))
    with mode:
        made.meta["val"] = target(*(node.meta["val"] for node in nodes))
    graph.output((made,))
    return fx.GraphModule({}, graph)


CASES = {
    # name: (target, shapes, places of tensors read through a transposition)
    "whole": (aten.linear.default, ((64, 64), (128, 64)), ()),
    "ragged": (aten.linear.default, ((70, 50), (131, 50), (131,)), ()),
    "tall": (aten.linear.default, ((131, 50), (70, 50), (70,)), ()),
    "tokens": (aten.linear.default, ((2, 35, 40), (66, 40), (66,)), ()),
    "both_turned": (aten.linear.default, ((40, 70), (40, 66)), (0, 1)),
    "batched": (aten.bmm.default, ((3, 66, 40), (3, 40, 70)), ()),
    "heads": (aten.matmul.default, ((2, 2, 66, 40), (2, 2, 70, 40)), (1,)),
}


@pytest.fixture
def every_size_pays(monkeypatch):
    monkeypatch.setattr(product, "_pays", lambda *_, **__: True)


def written(name, way):
    target, shapes, turned = CASES[name]
    graph = graph_of(target, *shapes, turned=turned)
    return graph, fuse(graph, device="cuda", schedule=Schedule(gpu_product=way))


def interpreted(name, way, folder):
    """Return the error as a multiple of float32's unit roundoff, by the sum of magnitudes."""
    graph, kernels = written(name, way)
    torch.manual_seed(0)
    held = [n.meta["val"].shape for n in graph.graph.nodes if n.op == "placeholder"]
    inputs = [torch.rand(shape) for shape in held]
    module = loaded(module_source(kernels), name=f"{name}_{way}", folder=folder)
    [result] = run_fused(graph, inputs, kernels, module=module)
    [exact] = fx.Interpreter(graph).run(*(each.double() for each in inputs))
    assert result.shape == exact.shape
    return ((result.double() - exact).abs() / exact.abs()).max().item() / 6e-8


def test_large_float32_products_are_worth_it_and_small_or_double_ones_are_not() -> None:
    def ways(*shapes, **kinds):
        graph = graph_of(aten.linear.default, *shapes, **kinds)
        return {schedule.gpu_product for schedule in schedules(graph, "cuda")}

    assert ways((1024, 8192), (8192, 8192)) > {"large", "direct", "library"}
    # Few rows: cutting four gigabytes of weights first would cost more than it saves.
    assert "large" not in ways((128, 32768), (32768, 32768))
    assert "direct" in ways((128, 32768), (32768, 32768))
    assert ways((8, 8192), (8192, 8192)) == {"library"}
    assert ways((64, 64), (64, 64)) == {"library"}
    assert ways((1024, 8192), (8192, 8192), dtype=torch.float64) == {"library"}


def test_the_library_multiplies_unless_a_schedule_says_otherwise() -> None:
    graph = graph_of(aten.linear.default, (1024, 8192), (8192, 8192))
    assert fuse(graph, device="cuda", schedule=Schedule()) == []
    assert fuse(graph, device="cpu", schedule=Schedule(gpu_product="large")) == []


def test_a_transposed_weight_is_read_as_it_lies_in_memory() -> None:
    graph = graph_of(aten.linear.default, (1024, 8192), (8192, 8192), turned=(1,))
    [kernel] = fuse(graph, device="cuda", schedule=Schedule(gpu_product="large"))
    assert [node.name for node in kernel.inputs] == ["in0", "in1"]
    assert [str(node.target) for node in kernel.nodes] == [
        "aten.permute.default",
        "aten.linear.default",
    ]


@pytest.mark.parametrize("way", ["large", "direct_small"])
@pytest.mark.parametrize("name", ["ragged", "batched"])
def test_products_compile_to_tensor_core_instructions_for_sm_90(
    name: str, way: str, every_size_pays, tmp_path: Path
) -> None:
    _, [kernel] = written(name, way)
    compiled = compile_only(kernel, folder=tmp_path)
    assert "wgmma.mma_async" in compiled[-1].ptx
    assert all(each.shared_bytes <= 227 * 1024 for each in compiled)


@pytest.mark.slow
def test_interpreted_products_are_as_exact_as_float32() -> None:
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, env=env, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    errors = json.loads(done.stdout)
    assert set(errors) == {f"{name} {way}" for name in CASES for way in SMALL}
    # The interpreter multiplies in float32: what is left is the error of cuts and sums.
    assert {case: error for case, error in errors.items() if error > 16} == {}


if __name__ == "__main__":
    product._pays = lambda *_, **__: True
    for way, size in SMALL.items():  # the interpreter is slow
        product.TILES[way] = replace(product.TILES[way], rows=size, cols=size)
    with tempfile.TemporaryDirectory() as scratch:
        found = {
            f"{name} {way}": interpreted(name, way, Path(scratch))
            for name in CASES
            for way in SMALL
        }
    sys.stdout.write(json.dumps(found))
