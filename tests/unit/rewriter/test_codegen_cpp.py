"""C++ kernels against float64, on shapes that leave tails, and on inputs that are not tame."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kopt.actors.rewriter.codegen import Schedule, fuse
from kopt.actors.rewriter.codegen.check import loaded, module_source, run_fused

RHO_LIMIT = 10.0
ROUNDING = 3e-7
"""Relative to the largest value: below this, both results are as exact as float32 is."""


class Wrapped(nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(*args)


@pytest.fixture(scope="module", autouse=True)
def _build_folder(tmp_path_factory: pytest.TempPathFactory):
    # The files would build into a folder of the machine otherwise, and tests would share it.
    patch = pytest.MonkeyPatch()
    patch.setenv("KOPT_BUILD_DIR", str(tmp_path_factory.mktemp("build")))
    yield
    patch.undo()


def fused(function, inputs, folder: Path, schedule: Schedule | None = None, *, least: int = 1):
    """Return what the generated code gives; it must consist of at least `least` kernels."""
    with torch.no_grad():
        graph = torch.export.export(Wrapped(function), tuple(inputs), strict=False).graph_module
    kernels = fuse(graph, device="cpu", schedule=schedule or Schedule())
    assert len(kernels) >= least
    module = loaded(module_source(kernels), name="kernels", folder=folder)
    return run_fused(graph, inputs, kernels, module=module)


def double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.dtype == torch.float32 else tensor


def check(function, inputs, folder: Path, schedule: Schedule | None = None) -> None:
    """The generated code must be about as near to float64 as torch's own float32 is."""
    results = fused(function, inputs, folder, schedule)
    wanted = function(*inputs)
    exact = function(*(double(tensor) for tensor in inputs))
    several = wanted if isinstance(wanted, tuple) else (wanted,)
    exacts = exact if isinstance(exact, tuple) else (exact,)
    for got, torch_own, truth in zip(results, several, exacts, strict=True):
        assert got.shape == torch_own.shape
        assert got.dtype == torch_own.dtype
        finite = torch.isfinite(truth.double())
        assert torch.equal(torch.isnan(got.double()), torch.isnan(torch_own.double()))
        if not finite.any():
            continue
        error = (got.double() - truth.double())[finite].abs().max().item()
        own = (torch_own.double() - truth.double())[finite].abs().max().item()
        scale = truth.double()[finite].abs().max().item()
        assert error <= max(RHO_LIMIT * own, ROUNDING * scale), (error, own)


SHAPES = [(1, 3), (5, 1), (5, 3), (257, 17), (1, 1000), (5, 1025)]

ELEMENT_WISE = {
    "gelu": lambda x: F.gelu(x) * 2 + x,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "tanh": torch.tanh,
    "softplus": F.softplus,
    "elu": F.elu,
    "selu": F.selu,
    "hardswish": lambda x: F.hardswish(x) + F.hardsigmoid(x),
    "logsigmoid": F.logsigmoid,
    "softsign": F.softsign,
    "sigmoid_of_a_chain": lambda x: torch.sigmoid(x.clamp(-1, 2) * 3 - 0.5),
    "powers": lambda x: (x.abs() + 0.1) ** 1.7 + x**3,
    "where": lambda x: torch.where(x > 0, x * x, x.exp()),
    "booleans": lambda x: (x > 0) & (x < 1),
}
ROW_WISE = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "logsumexp": lambda x: x.logsumexp(1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "rms_norm": lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5),
    "extremes": lambda x: x.amax(1) - x.amin(1),
    "max_with_index": lambda x: x.max(1),
    "argmin": lambda x: x.argmin(1),
    "product": lambda x: (x * 0.1 + 1).prod(1),
    "normalize": F.normalize,
    "cumsum": lambda x: x.cumsum(1),
    "cumsum_from_the_end": lambda x: x.flip(1).cumsum(1).flip(1),
    "cumprod": lambda x: (1 + x * 0.01).cumprod(1),
    "scan_then_reduction": lambda x: (lambda c: c / (c.abs().amax(1, keepdim=True) + 1))(
        x.cumsum(1)
    ),
    "cosine": lambda x: F.cosine_similarity(x, x.flip(0) + 1),
}
COLUMN_WISE = {
    "softmax_over_rows": lambda x: x.softmax(0),
    "sum_over_rows": lambda x: (x * x).sum(0),
    "cumsum_over_rows": lambda x: (x * 2).cumsum(0),
    "max_over_rows": lambda x: x.max(0),
    "both_ways": lambda x: x.softmax(1).softmax(0),
}
WHOLE = {
    "sum": lambda x: (x * 2).sum(),
    "frobenius": lambda x: x / x.norm(),
    "mse": lambda x: F.mse_loss(x, x.flip(0) + 1),
    "huber": lambda x: F.smooth_l1_loss(x, x.flip(1) * 2 + 1),
    "kl": lambda x: F.kl_div(x.log_softmax(1), (x * 2).flip(0).softmax(1), reduction="batchmean"),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.arange(x.shape[0]) * 7 % x.shape[1]),
    "hinge": lambda x: torch.mean(torch.clamp(1 - x * (x + 1).sign(), min=0)),
    "triplet": lambda x: F.triplet_margin_loss(x, x.flip(0) + 0.5, x * 0.5),
}


def test_element_wise_code_agrees_with_float64(tmp_path: Path) -> None:
    torch.manual_seed(0)
    functions = list(ELEMENT_WISE.values())
    check(lambda x: tuple(f(x) for f in functions), [torch.randn(5, 1025)], tmp_path)


@pytest.mark.parametrize("name", [*ROW_WISE, *COLUMN_WISE])
def test_reductions_and_scans_agree_with_float64(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    function = {**ROW_WISE, **COLUMN_WISE}[name]
    for shape in ((5, 3), (33, 1025)):
        check(function, [torch.randn(shape)], tmp_path)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_tensor_reductions_agree_with_float64(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    for shape in ((5, 3), (257, 300)):
        check(WHOLE[name], [torch.randn(shape)], tmp_path)


@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_is_right_on_shapes_that_leave_tails(
    shape: tuple[int, int], tmp_path: Path
) -> None:
    torch.manual_seed(1)
    check(lambda x: (x * 2).softmax(-1), [torch.randn(shape)], tmp_path)


def test_norms_over_channels_and_groups_agree_with_float64(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 6, 5, 7)
    weight, bias, mean, var = torch.randn(4, 6).abs().unbind()
    check(lambda x, w, b: F.group_norm(x, 3, w, b), [x, weight, bias], tmp_path)
    check(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [x, weight, bias], tmp_path)
    check(
        lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, training=False),
        [x, weight, bias, mean, var],
        tmp_path,
    )
    check(lambda x: F.batch_norm(x, None, None, training=True), [x], tmp_path)
    check(lambda x: x.softmax(1), [x], tmp_path)
    check(lambda x: (x * 2).mean((0, 2, 3)), [x], tmp_path)
    check(lambda x: F.adaptive_avg_pool2d(x, 1) + 1, [x], tmp_path)


def test_a_long_row_is_shared_out_and_summed_exactly(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.rand(2, 1_000_003)
    [got] = fused(lambda x: (x * x).sum(1), [x], tmp_path)
    truth = (x.double() * x.double()).sum(1)
    # Squares are rounded to float32 (random, 6e-8 each), the sum is not: one rounding at the end.
    assert ((got.double() - truth).abs() / truth).max().item() < 1.3e-7


def test_inputs_that_are_not_contiguous_are_read_right(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(33, 40)[::2, ::3]
    check(lambda x: (x * 2 + 1).softmax(-1), [x], tmp_path)
    check(lambda x: (x.t() * 2 + 1).softmax(-1), [torch.randn(17, 33)], tmp_path)
    check(lambda x: torch.tanh(x[:, 3:20:2]) * x[:, :9], [torch.randn(5, 40)], tmp_path)


def test_broadcasts_of_every_kind_agree_with_torch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, row, col, one = torch.randn(7, 33), torch.randn(33), torch.randn(7, 1), torch.randn(())
    check(lambda x, r, c, o: torch.tanh(x + r) * c - o, [x, row, col, one], tmp_path)
    check(lambda r, c: torch.tanh(r * c).sum(1), [row, col], tmp_path)


def test_extreme_values_and_masks_come_out_as_in_torch(tmp_path: Path) -> None:
    x = torch.tensor([[1e4, -1e4, 0.0, 88.0], [-1e4, -1e4, -1e4, -1e4], [3.0, 2.0, 1.0, -3.0]])
    mask = torch.tensor([[True, False, True, True]] * 3)
    for function in (
        lambda x, m: x.masked_fill(~m, -float("inf")).softmax(-1),
        lambda x, m: F.gelu(x) + m,
        lambda x, m: F.softplus(x) * m,
        lambda x, m: torch.sigmoid(x) + m,
        lambda x, m: torch.tanh(x) * m,
        lambda x, m: F.mish(x) * m,
        lambda x, m: F.elu(x) * m,
        lambda x, m: x.masked_fill(m, -float("inf")).logsumexp(-1),
    ):
        check(function, [x, mask], tmp_path)


def test_nan_and_infinity_go_through_maxima_and_functions(tmp_path: Path) -> None:
    x = torch.tensor([[1.0, float("nan"), 2.0], [float("inf"), 0.0, -1.0], [-float("inf")] * 3])
    for function in (
        lambda x: x.amax(1) + 1,
        lambda x: x.exp() + 1,
        lambda x: (x.abs() + 1).log() * 2,
        lambda x: torch.relu(x) * 2,
        lambda x: torch.tanh(x) + torch.erf(x),
        lambda x: x.clamp(-1, 1) + 1,
    ):
        [got] = fused(function, [x], tmp_path)
        torch.testing.assert_close(got, function(x), equal_nan=True)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(cpu_math="fast"),
        Schedule(cpu_streaming=True),
        Schedule(cpu_lanes=16),
        Schedule(cpu_lanes=256, cpu_keep=False),
        Schedule(cpu_chunk=256),
    ],
    ids=["fast", "streaming", "narrow", "wide", "chunked"],
)
def test_every_schedule_gives_right_results(schedule: Schedule, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(9, 1037)
    check(lambda x: (F.gelu(x) + x).softmax(-1), [x], tmp_path, schedule)
    check(lambda x: F.gelu(x) + x, [x], tmp_path, schedule)
    check(lambda x: x.cumsum(1), [x], tmp_path, schedule)
    check(lambda x: x.softmax(0), [x], tmp_path, schedule)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_a_kernel_s_text_brings_its_headers(dtype, compiler_alone, tmp_path: Path) -> None:
    x = torch.zeros(3, 40, dtype=dtype)
    [got] = fused(lambda x: x * 2 + 1, [x], tmp_path, Schedule(cpu_streaming=True))
    assert torch.equal(got, torch.ones_like(x))


def test_the_result_depends_neither_on_threads_nor_on_the_run(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 200_000)
    threads = torch.get_num_threads()
    try:
        runs = []
        for count in (1, 2, 2):
            torch.set_num_threads(count)
            runs.append(fused(lambda x: (x.exp() * 2).sum(), [x], tmp_path)[0])
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(runs[0], runs[1])
    assert torch.equal(runs[1], runs[2])


def test_another_shape_is_refused_with_a_clear_line(tmp_path: Path) -> None:
    with torch.no_grad():
        graph = torch.export.export(
            Wrapped(F.gelu), (torch.randn(4, 4),), strict=False
        ).graph_module
    [kernel] = fuse(graph, device="cpu", schedule=Schedule())
    module = loaded(module_source([kernel]), name="refusing", folder=tmp_path)
    with pytest.raises(ValueError, match=r"expected torch.float32 of shape \(4, 4\)"):
        getattr(module, kernel.name)(torch.randn(4, 5))


def test_source_that_does_not_compile_says_what_the_compiler_said(tmp_path: Path) -> None:
    source = module_source(
        fuse(
            torch.export.export(Wrapped(F.gelu), (torch.randn(4),), strict=False).graph_module,
            device="cpu",
            schedule=Schedule(),
        )
    )
    broken = source.replace("const float v", "const flaot v")
    with pytest.raises(RuntimeError, match="flaot"):
        loaded(broken, name="broken", folder=tmp_path)


def test_a_written_file_needs_only_torch_and_a_compiler(tmp_path: Path) -> None:
    graph = torch.export.export(
        Wrapped(lambda x: F.gelu(x) + 1), (torch.zeros(4),), strict=False
    ).graph_module
    kernels = fuse(graph, device="cpu", schedule=Schedule())
    path = tmp_path / "alone.py"
    call = f"print({kernels[0].name}(torch.zeros(4)).tolist())\n"
    path.write_text(module_source(kernels) + "\n" + call)
    env = {k: v for k, v in os.environ.items() if k not in ("KOPT_BUILD_DIR", "CXX")}
    env["TMPDIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-P", str(path)], capture_output=True, text=True, env=env, cwd=tmp_path
    )
    assert done.stdout.strip() == "[1.0, 1.0, 1.0, 1.0]", done.stderr


def test_a_value_and_its_transpose_agree_with_torch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(17, 17)
    check(lambda x: torch.tanh(x + x.t()), [x], tmp_path)
    check(lambda x: (lambda y: y + y.t())(x.cumsum(1)), [x], tmp_path)
    check(lambda x: (lambda y: y @ y.t() + y.softmax(0).t())(x.softmax(1)), [x], tmp_path)


def test_extremes_and_their_indices_are_torchs_also_at_ties_nan_and_signed_zeros(
    tmp_path: Path,
) -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor(
        [[1, nan, 2, nan], [-0.0, 0.0, -0.0, -1], [inf, -inf, inf, 1], [-3, -3, -5, -5.0]]
    )
    for function in (
        lambda x: x.max(1),
        lambda x: x.min(1),
        lambda x: x.max(0),
        lambda x: x.argmin(1) + 0,
        lambda x: x.argmax(),
        lambda x: x.long().argmax(1) + x.long().amax(1),
    ):
        wanted = function(x)
        several = wanted if isinstance(wanted, tuple) else (wanted,)
        for got, torch_own in zip(fused(function, [x], tmp_path), several, strict=True):
            torch.testing.assert_close(got, torch_own, equal_nan=True)


def test_statistics_of_long_rows_survive_a_large_mean(tmp_path: Path) -> None:
    # One walk takes the difference of two sums; in float32 it would lose all digits here.
    torch.manual_seed(0)
    x = torch.randn(2, 200_000) + 1000
    [got] = fused(lambda x: x.var(1), [x], tmp_path)
    torch.testing.assert_close(got.double(), x.double().var(1), rtol=1e-6, atol=0)
    check(lambda x: F.layer_norm(x, x.shape[1:]), [torch.randn(2, 200_000)], tmp_path)


def test_many_rows_of_few_columns_are_reduced_in_pieces(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(9000, 17)
    check(lambda x: (x * 2).sum(0), [x], tmp_path)
    check(lambda x: x.amax(0) + 1, [x], tmp_path)
    check(lambda x: x.softmax(0), [x], tmp_path)
    check(lambda x: F.batch_norm(x, None, None, training=True), [x], tmp_path)


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "expm1", "tanh", "erf", "sigmoid"])
def test_elementary_functions_stay_within_two_units_in_the_last_place(
    name: str, tmp_path: Path
) -> None:
    magnitude = torch.logspace(-30, 1.9, 20_000, base=10)
    x = torch.cat([magnitude, -magnitude, torch.zeros(1)])
    if name in ("log", "log1p"):
        x = x[x > (0 if name == "log" else -1)]
    if name == "exp":
        x = x[x > -87.3]  # below, results are flushed to 0
    function = getattr(torch, name)
    [got] = fused(lambda x: function(x), [x], tmp_path)
    truth = function(x.double())
    unit = torch.finfo(torch.float32).eps * truth.abs().clamp(min=1.2e-38)
    assert ((got.double() - truth).abs() / unit).max().item() < 2.5
