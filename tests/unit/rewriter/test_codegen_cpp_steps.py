"""How C++ walks a row: small steps in short rows, lanes that keep values, blocks of halves."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kopt.actors.rewriter.codegen import Schedule, fuse
from kopt.actors.rewriter.codegen.check import loaded, module_source, run_fused

NAN = float("nan")


class Wrapped(nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.fixture(autouse=True)
def _builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOPT_BUILD_DIR", str(tmp_path))


def fused(function, x: torch.Tensor, folder: Path, **schedule) -> tuple[list[torch.Tensor], str]:
    """Return what the generated code gives, and its text."""
    with torch.no_grad():
        graph = torch.export.export(Wrapped(function), (x,), strict=False).graph_module
    kernels = fuse(graph, device="cpu", schedule=Schedule(**schedule))
    source = module_source(kernels)
    module = loaded(source, name="steps", folder=folder)
    return run_fused(graph, [x], kernels, module=module), source


@pytest.mark.parametrize("length", [3, 80, 81, 257])
def test_statistics_of_rows_around_the_lengths_where_steps_change(length, tmp_path) -> None:
    torch.manual_seed(0)
    x = 3.0 * torch.randn(97, length) + 5.0

    def function(x):
        return x.var(1), x.amax(1), F.layer_norm(x, x.shape[1:])

    found, _ = fused(function, x, tmp_path)
    for got, wanted in zip(found, function(x.double()), strict=True):
        torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-5)


def test_a_nan_or_infinity_in_any_place_of_a_short_row_is_its_extreme(tmp_path) -> None:
    x = torch.randn(40, 19)
    for row in range(19):
        x[row, row] = NAN
        x[row + 19, row] = float("inf") if row % 2 else -float("inf")
    found, _ = fused(lambda x: (x.amax(1), x.amin(1)), x, tmp_path)
    for got, wanted in zip(found, (x.amax(1), x.amin(1)), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("rows", "dtype"),  # kept by 64 lanes, by fewer, and not at all
    [(50, torch.float32), (1900, torch.bfloat16), (4200, torch.float32)],
    ids=str,
)
def test_lanes_keep_what_is_costly_where_it_fits(rows, dtype, tmp_path) -> None:
    torch.manual_seed(0)
    x = torch.randn(rows, 300).to(dtype)
    (found,), source = fused(lambda x: F.log_softmax(F.silu(x), 0), x, tmp_path)
    assert ("keep_" in source) == (rows < 4200)
    wanted = F.log_softmax(F.silu(x.double()), 0)
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(found.double(), wanted, rtol=max(2 * unit, 1e-6), atol=1e-6)


def test_a_pass_fetches_the_last_value_that_is_made_of_costly_ones_alone(tmp_path) -> None:
    x = torch.randn(64, 300).half()
    _, source = fused(lambda x: F.softmax(F.silu(x), 1), x, tmp_path)
    assert source.count("alignas(64) float keep_") == 2  # silu(x) and its exponential, not x


@pytest.mark.parametrize(
    ("shape", "streaming"), [((3, 1000), True), ((1000, 3), False), ((33, 17), True)], ids=str
)
def test_float16_is_moved_in_blocks_with_tails_of_any_length(shape, streaming, tmp_path) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape).half()
    function = lambda x: (x * 1.25 + 0.5, (x * 2).amax(0))  # noqa: E731
    found, source = fused(function, x, tmp_path, cpu_streaming=streaming)
    assert "k_widen_float16(" in source
    for got, wanted in zip(found, function(x.float()), strict=True):
        assert torch.equal(got, wanted.half())


@pytest.mark.parametrize("math", ["exact", "fast"])
def test_one_plus_erf_has_its_limits_and_passes_nan_on(math, tmp_path) -> None:
    x = torch.cat([torch.linspace(-12, 12, 40001), torch.tensor([NAN, -1e30, 1e30])])
    x = torch.cat([x, torch.tensor([-float("inf"), float("inf"), 0.0, -0.0])])
    (found,), source = fused(lambda x: 1.0 + torch.erf(x * 1.0), x, tmp_path, cpu_math=math)
    assert "k_one_plus_erf(" in source
    wanted = 1.0 + torch.erf(x.double())
    assert torch.equal(found.isnan(), wanted.isnan())
    error = (found.double() - wanted)[~wanted.isnan()].abs().max().item()
    assert error < {"exact": 2.5e-7, "fast": 5e-7}[math]  # one unit of 2 is 2.4e-7
    assert not found[x < -4.3].any()


@pytest.mark.parametrize("math", ["exact", "fast"])
def test_gelu_is_nothing_far_below_zero_however_far(math, tmp_path) -> None:
    x = -torch.logspace(0.7, 30, 999)
    (found,), source = fused(lambda x: F.gelu(x) * 1.0, x, tmp_path, cpu_math=math)
    assert "k_one_plus_erf(" in source
    torch.testing.assert_close(found.double(), F.gelu(x.double()), rtol=0, atol=2e-6)


def test_exp_overflows_and_underflows_where_it_should(tmp_path) -> None:
    x = torch.tensor([-200.0, -87.0, 0.0, 1.0, 88.7, 88.8, 200.0, NAN, float("inf")]).repeat(20)
    (found,), _ = fused(lambda x: torch.exp(x * 1.0), x, tmp_path)
    torch.testing.assert_close(found, x.exp(), rtol=2e-7, atol=2e-38, equal_nan=True)
