"""The executor's rules: each fault names its line; honest programs have none."""

from __future__ import annotations

import textwrap

import pytest

from kopt.edit_check import edit_faults
from kopt.prompts.templates import example

REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x, y):
        return x + y
"""
HONEST = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 1024}, num_warps=8)], key=["n"]
)
@triton.jit
def add(x_ptr, y_ptr, out_ptr, scale_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n
    scale = tl.load(scale_ptr)
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask, 0.0)
    tl.store(out_ptr + offsets, (x + y) * scale, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x, y):
        out = torch.empty_like(x)
        add[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x, x.numel())
        return out
"""


def faults(source: str, **more: object) -> tuple[str, ...]:
    known = {"language": "triton", "reference": REFERENCE, **more}
    return edit_faults(textwrap.dedent(source), **known)  # type: ignore[arg-type]


def test_an_honest_kernel_breaks_no_rule() -> None:
    assert faults(HONEST, version=HONEST, functions=("tl.load(pointer)", "tl.store(pointer)")) == (
        "line 13: Triton has no `tl.program_id` here",
        "line 14: Triton has no `tl.arange` here",
    )
    known = ("tl.load(p)", "tl.store(p)", "tl.program_id(axis)", "tl.arange")
    assert faults(HONEST, version=HONEST, functions=known) == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mask=mask)\n    y", ")\n    y", "`tl.load` without a mask in the autotuned kernel `add`"),
        (", (x + y) * scale, mask=mask)", ", (x + y) * scale)", "`tl.store` without a mask"),
        ('{"BLOCK": 256}', '{"XBLOCK": 256}', "sets `XBLOCK`, which `add` does not take"),
        ("* scale, mask", "* factor, mask", "`add` reads `factor`, which nothing defines"),
        (
            "def forward(self, x, y)",
            "def forward(self, x, y, z)",
            "takes (x, y, z); it is called as",
        ),
        ("scale_ptr, n, BLOCK", "scale_ptr, n, m, BLOCK", "keep the parameters, or give another"),
    ],
)
def test_a_broken_rule_is_named(old: str, new: str, words: str) -> None:
    assert old in HONEST
    (fault,) = faults(HONEST.replace(old, new, 1), version=HONEST)
    assert words in fault
    assert fault.startswith("line ")


def test_kernels_without_autotuning_may_leave_masks_out() -> None:
    plain = HONEST.replace("mask=mask)\n    y", ")\n    y")
    start, end = plain.index("@triton.autotune"), plain.index("@triton.jit")
    assert faults(plain[:start] + plain[end:]) == ()


def test_block_pointers_and_single_elements_need_no_mask() -> None:
    source = HONEST.replace(
        "x = tl.load(x_ptr + offsets, mask=mask)",
        "block = tl.make_block_ptr(x_ptr, (n,), (1,), (start,), (BLOCK,), (0,))\n"
        "    x = tl.load(block, boundary_check=(0,)) + tl.load(x_ptr + tl.program_id(0))",
    )
    assert faults(source) == ()


def test_offsets_are_followed_through_assignments_and_casts() -> None:
    source = HONEST.replace(
        "x = tl.load(x_ptr + offsets, mask=mask)",
        "far = offsets.to(tl.int64)\n    place = x_ptr + far[:, None] * 2\n    x = tl.load(place)",
    )
    (fault,) = faults(source)
    assert "without a mask" in fault


def test_gate_one_speaks_first_and_alone() -> None:
    assert faults("def f(:\n") == ("line 1: invalid syntax",)
    assert "defines no class ModelNew" in faults("x = 1\n")[0]


def test_names_of_closures_globals_and_builtins_are_known() -> None:
    source = """
    import torch
    from torch import nn

    SCALE = 2.0


    def outer():
        inner = 3

        def within():
            global LATER
            LATER = inner
            return [len(str(each)) for each in range(inner)]

        return within


    class ModelNew(nn.Module):
        def __init__(self, width):
            super().__init__()

        def forward(self, x, y=None):
            return x * SCALE * outer()()[0] * LATER if __name__ else x
    """
    assert faults(source, language="torch") == ()


@pytest.mark.parametrize(
    ("given", "taken"),
    [("x, y=None", "x"), ("x", "x, y=None"), ("x, y", "*arguments"), ("x, y=1", "x, y")],
)
def test_arguments_with_defaults_may_be_left_out_or_added(given: str, taken: str) -> None:
    source = "class {}:\n    def forward(self, {}):\n        return 0\n"
    reference, candidate = source.format("Model", given), source.format("ModelNew", taken)
    assert faults(candidate, language="torch", reference=reference) == ()


def test_a_reference_that_cannot_be_read_gives_no_fault_of_its_own() -> None:
    assert faults(HONEST, reference="class Model(:") == ()


@pytest.mark.parametrize("language", ["triton", "cpp"])
def test_the_examples_of_our_own_prompts_break_no_rule(language: str) -> None:
    assert faults(example(language), language=language, reference="") == ()
