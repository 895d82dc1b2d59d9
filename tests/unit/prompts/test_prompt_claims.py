"""What Triton authors are told of the installed Triton, seen in what it compiles to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

HOPPER = ("cuda", 90, 32)


@triton.jit
def product(left, right, out, SIZE: tl.constexpr, DEPTH: tl.constexpr, HOW: tl.constexpr):
    """One tile by TMA descriptors that the host made."""
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for k in tl.range(0, DEPTH, 32):
        total = tl.dot(left.load([0, k]), right.load([0, k]).T, total, input_precision=HOW)
    at = tl.arange(0, SIZE)
    tl.store(out + at[:, None] * SIZE + at[None, :], total)


@triton.jit
def sums(x, out, rows, WIDTH: tl.constexpr, STAGES: tl.constexpr):
    """A loop without a product."""
    for row in tl.range(0, rows, num_stages=STAGES):
        total = tl.sum(x.load([row, 0]))
        tl.store(out + row, total)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def compiled(kernel: Any, types: dict[str, str], constants: dict[str, object], **how: int) -> Any:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = kernel.arg_names
    source = ASTSource(
        fn=kernel,
        signature={name: types.get(name, "constexpr") for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(names.index("out"),): [["tt.divisibility", 16]]},
    )
    return triton.compile(source, target=GPUTarget(*HOPPER), options=how)


def product_code(how: str) -> str:
    tile = "tensordesc<fp32[64,32]>"
    types = {"left": tile, "right": tile, "out": "*fp32"}
    constants = {"SIZE": 64, "DEPTH": 128, "HOW": how}
    return str(compiled(product, types, constants, num_warps=4, num_stages=2).asm["ptx"])


def test_tf32x3_is_three_products_on_matrix_units_and_ieee_none() -> None:
    counts = {how: product_code(how).count("wgmma.mma_async") for how in ("tf32", "tf32x3", "ieee")}
    assert counts["tf32"] > 0
    assert counts["tf32x3"] == 3 * counts["tf32"]
    assert counts["ieee"] == 0


def test_a_descriptor_that_the_host_made_is_read_by_tma() -> None:
    assert "cp.async.bulk.tensor" in product_code("tf32")


def test_a_loop_without_a_product_loads_ahead_by_the_stages_of_its_range_alone() -> None:
    types = {"x": "tensordesc<fp32[1,1024]>", "out": "*fp32", "rows": "i32"}

    def shared_bytes(stages: int | None, num_stages: int) -> int:
        constants = {"WIDTH": 1024, "STAGES": stages}
        return int(compiled(sums, types, constants, num_stages=num_stages).metadata.shared)

    # Rows of 4 KiB; a second one has room only where the range itself asks for stages.
    assert shared_bytes(None, 4) < 2 * 4096
    assert shared_bytes(3, 1) >= 2 * 4096


def test_both_names_that_authors_are_told_are_there() -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    assert callable(TensorDescriptor.from_tensor)
    assert callable(triton.set_allocator)
