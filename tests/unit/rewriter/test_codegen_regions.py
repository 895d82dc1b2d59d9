"""Which nodes become one function, and how many kernels it takes."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kopt.actors.rewriter.codegen import Schedule, fuse, schedules
from kopt.actors.rewriter.codegen.region import regions
from kopt.actors.rewriter.codegen.stages import plan


class Wrapped(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def graph_of(function, *inputs):
    with torch.no_grad():
        return torch.export.export(Wrapped(function), inputs, strict=False).graph_module


def stages_of(function, *inputs):
    [region] = regions(graph_of(function, *inputs).graph)
    return plan(region.roots)


def test_library_calls_part_the_regions() -> None:
    w = torch.randn(8, 8)
    graph = graph_of(lambda x, w: F.gelu(F.linear(F.gelu(x) + 1, w)) * 2, torch.randn(4, 8), w)
    found = regions(graph.graph)
    names = [[str(n.target).split(".")[1] for n in region.nodes] for region in found]
    assert names == [["gelu", "add"], ["gelu", "mul"]]


def test_an_early_op_joins_its_late_consumer() -> None:
    # sigmoid(x) is needed only after the matmul: it is computed there, not stored before.
    graph = graph_of(
        lambda x, w: torch.sigmoid(x) * F.linear(x, w), torch.randn(8, 8), torch.randn(8, 8)
    )
    [region] = regions(graph.graph)
    assert [str(n.target) for n in region.nodes] == ["aten.sigmoid.default", "aten.mul.Tensor"]


def test_regions_never_lie_on_both_sides_of_a_call() -> None:
    def function(x, w):
        early = F.gelu(x)
        return F.gelu(F.linear(early, w)) + early

    graph = graph_of(function, torch.randn(8, 8), torch.randn(8, 8))
    for kernel in fuse(graph, device="cpu", schedule=Schedule()):
        inside = set(kernel.nodes)
        reached, stack = set(), [u for n in inside for u in n.users if u not in inside]
        while stack:
            node = stack.pop()
            assert node not in inside
            if node not in reached:
                reached.add(node)
                stack.extend(node.users)


def test_one_trivial_op_is_left_to_torch() -> None:
    assert regions(graph_of(torch.relu, torch.randn(8)).graph) == []
    assert len(regions(graph_of(torch.tanh, torch.randn(8)).graph)) == 1


def test_a_graph_that_mutates_is_left_alone() -> None:
    graph = graph_of(lambda x: (x * 2).relu_() + 1, torch.randn(8))
    assert any("relu_" in str(node.target) for node in graph.graph.nodes)
    assert fuse(graph, device="cpu", schedule=Schedule()) == []


def test_the_graph_is_not_changed() -> None:
    graph = graph_of(lambda x: F.gelu(x).softmax(-1), torch.randn(4, 8))
    before = str(graph.graph)
    fuse(graph, device="cpu", schedule=Schedule())
    assert str(graph.graph) == before


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: F.gelu(x).softmax(-1), 1),
        (lambda x: F.layer_norm(x, (16,)), 1),
        (lambda x: x / x.norm(), 1),
        # The losses of the rows, then their mean.
        (lambda x: F.cross_entropy(x, x.argmin(1)), 2),
        (lambda x: F.kl_div(x.log_softmax(1), x.softmax(1), reduction="sum"), 2),
        # Rows and columns cannot be walked at once.
        (lambda x: x.softmax(1).softmax(0), 2),
    ],
)
def test_the_number_of_kernels_is_the_least_that_does(function, count: int) -> None:
    assert len(stages_of(function, torch.randn(8, 16))) == count


def test_a_square_matrix_is_not_confused_with_its_transpose() -> None:
    # x and its transpose read the same memory in one kernel, by different indices; a computed
    # value and its transpose cannot be in one kernel.
    x = torch.randn(16, 16)
    assert len(stages_of(lambda x: torch.tanh(x + x.t()), x)) == 1
    assert len(stages_of(lambda x: (lambda y: y + y.t())(x.cumsum(1)), x)) == 2


def test_regions_of_the_same_code_share_a_function() -> None:
    def function(x, w):
        for _ in range(3):
            x = F.linear(F.gelu(x) + 1, w)
        return x

    kernels = fuse(
        graph_of(function, torch.randn(4, 8), torch.randn(8, 8)), device="cpu", schedule=Schedule()
    )
    assert [bool(kernel.definition) for kernel in kernels] == [True, False, False]
    assert {kernel.name for kernel in kernels} == {"fused_0"}
    assert all(" fused_0(" in kernel.call for kernel in kernels)


def test_schedules_are_distinct_and_survive_json() -> None:
    graph = graph_of(F.gelu, torch.randn(8))
    for device in ("cpu", "cuda"):
        found = schedules(graph, device)
        assert len(set(found)) == len(found) > 3
        assert [Schedule(**way.to_json()) for way in found] == found


def test_where_there_is_something_to_approximate_that_is_tried_next() -> None:
    fast = dataclasses.replace(Schedule(), gpu_math="fast")
    x = torch.randn(8, 16)
    assert schedules(graph_of(lambda x: x.softmax(-1), x), "cuda")[1] == fast
    assert schedules(graph_of(F.silu, x), "cuda")[1] == fast
    others = schedules(graph_of(lambda x: x * 2 + 1, x), "cuda")
    assert fast in others[3:]
