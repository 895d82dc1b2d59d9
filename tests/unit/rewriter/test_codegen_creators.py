"""What is made of numbers alone is made within the kernels that read it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kopt.actors.rewriter.codegen import Schedule, fuse
from kopt.actors.rewriter.codegen.check import loaded, module_source, run_fused
from kopt.actors.rewriter.codegen.region import regions


@pytest.fixture(scope="module", autouse=True)
def _build_folder(tmp_path_factory: pytest.TempPathFactory):
    patch = pytest.MonkeyPatch()
    patch.setenv("KOPT_BUILD_DIR", str(tmp_path_factory.mktemp("build")))
    yield
    patch.undo()


class Wrapped(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def graph_of(function, *inputs):
    with torch.no_grad():
        return torch.export.export(Wrapped(function), inputs, strict=False).graph_module


def causal(x):
    mask = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool).tril()
    return x.masked_fill(~mask, float("-inf")).softmax(-1)


def by_places(x):
    places = torch.arange(x.shape[-1])
    far = (places[:, None] - places[None, :]).abs() > 3
    return torch.where(far, torch.full((), -1e9), x * 0.5).softmax(-1)


def by_places_in_rows(x):
    places = torch.arange(1, 2 * x.shape[-1] + 1, 2, dtype=torch.float32)
    return (torch.tanh(x) / places).sum(-1) + torch.full((x.shape[-2],), 0.25)


def by_places_of_all(x):
    numbers = torch.arange(x.numel()).reshape(x.shape)
    return torch.where(numbers > 40, torch.exp(x), torch.zeros_like(x)).sum(-1)


def by_places_across(x):
    numbers = torch.arange(-5, x.shape[-1] * x.shape[-2] - 5).view(x.shape[-2:]).t()
    return (torch.sigmoid(x) * numbers + x.new_full((1,), 3)).amax(-1)


def by_ones(x):
    return torch.log1p(x.abs() + torch.ones_like(x)) * torch.arange(3)[1:2]


KINDS = [causal, by_places, by_places_in_rows, by_places_of_all, by_places_across, by_ones]


@pytest.mark.parametrize("function", KINDS)
@pytest.mark.parametrize("shape", [(3, 4, 33, 33), (2, 5, 64, 64)])
def test_kernels_make_it_themselves_and_give_what_torch_gives(
    function, shape, tmp_path: Path
) -> None:
    x = torch.randn(shape)
    graph = graph_of(function, x)
    (given,) = (node for node in graph.graph.nodes if node.op == "placeholder")
    kernels = fuse(graph, device="cpu", schedule=Schedule())
    assert [kernel.inputs for kernel in kernels] == [(given,)]
    module = loaded(module_source(kernels), name="kernels", folder=tmp_path)
    (result,) = run_fused(graph, (x,), kernels, module=module)
    torch.testing.assert_close(result, function(x))


@pytest.mark.parametrize("function", KINDS)
def test_a_gpus_kernels_make_it_themselves_too(function) -> None:
    graph = graph_of(function, torch.randn(2, 3, 16, 16))
    (given,) = (node for node in graph.graph.nodes if node.op == "placeholder")
    assert [k.inputs for k in fuse(graph, device="cuda", schedule=Schedule())] == [(given,)]


def after_a_product(x):
    early = torch.tanh(x)
    late = (early @ x + early).exp()
    return (late + torch.ones_like(late)).log()


def where_it_was_intermediate(x):
    low = torch.tanh(x) @ x
    return torch.where(low > 0.1, low.exp(), torch.zeros_like(low)) / (low * 0 + 2)


@pytest.mark.parametrize("function", [after_a_product, where_it_was_intermediate])
def test_what_is_made_like_an_intermediate_parts_no_kernel_from_its_input(
    function, tmp_path: Path
) -> None:
    x = torch.rand(8, 8)
    graph = graph_of(function, x)
    kernels = fuse(graph, device="cpu", schedule=Schedule())
    assert [len(kernel.outputs) for kernel in kernels] == [1, 1]
    module = loaded(module_source(kernels), name="kernels", folder=tmp_path)
    (result,) = run_fused(graph, (x,), kernels, module=module)
    torch.testing.assert_close(result, function(x))


@pytest.mark.parametrize(
    "made",
    [
        lambda: torch.full((8, 8), 0.1, dtype=torch.float16),
        lambda: torch.full((8, 8), 1e-8, dtype=torch.float16),
        lambda: torch.arange(4001, 4009, dtype=torch.float16),
        lambda: torch.arange(250, 258, dtype=torch.bfloat16),
        lambda: torch.arange(8, dtype=torch.bfloat16),
        lambda: torch.full((8, 1), 2.75, dtype=torch.int32),
        lambda: torch.ones((8, 1), dtype=torch.bool).to(torch.float32),
    ],
)
def test_numbers_are_rounded_as_a_tensor_rounds_them(made, tmp_path: Path) -> None:
    def function(x):
        return (x.exp() * made()).double() * 1.0

    x = torch.rand(8, 8)
    graph = graph_of(function, x)
    kernels = fuse(graph, device="cpu", schedule=Schedule())
    module = loaded(module_source(kernels), name="kernels", folder=tmp_path)
    (result,) = run_fused(graph, (x,), kernels, module=module)
    torch.testing.assert_close(result, function(x), rtol=1e-6, atol=0.0)


def test_what_several_read_does_not_join_them() -> None:
    def function(x, y):
        mask = torch.ones(128, 128)
        return F.gelu(x) * mask, F.silu(y) * mask

    found = regions(graph_of(function, torch.randn(128, 128), torch.randn(128, 128)).graph)
    assert [len(region.nodes) for region in found] == [2, 2]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_kernel_of_nothing_else_reads_it(device) -> None:
    """What it reads says where its result is to be."""

    def function(x):
        return x @ (torch.arange(64.0).reshape(8, 8) * 2).cos()

    (kernel,) = fuse(graph_of(function, torch.randn(8, 8)), device=device, schedule=Schedule())
    assert [str(node.target) for node in kernel.inputs] == ["aten.arange.default"]
