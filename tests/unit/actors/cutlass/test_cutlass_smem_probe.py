"""The probe of a layout: what is compiled at all, and what becomes of it."""

from __future__ import annotations

import pytest

from kopt.actors.cutlass import smem_probe
from kopt.actors.cutlass.checkout import Refused
from kopt.actors.cutlass.smem_probe import check_smem_layout, host_compiler, probe_source

SW128 = "GMMA::Layout_K_SW128_Atom<half_t>"


def test_the_probe_is_what_was_asked_for() -> None:
    source = probe_source(layout_atom=SW128, shape=[128, 64, 3], element="half_t")
    assert f"using Block = {SW128};" in source
    assert "make_shape(Int<128>{}, Int<64>{}, Int<3>{})" in source


@pytest.mark.parametrize(
    "atom",
    [
        "Layout<Shape<_8,_64>,Stride<_64,_1>>",
        "cute::SM90::GMMA::Layout_MN_SW64_Atom<cutlass::bfloat16_t>",
        "Mine",
    ],
)
def test_names_of_types_are_taken(atom: str) -> None:
    assert atom in probe_source(layout_atom=atom, shape=[8], element="float")


@pytest.mark.parametrize(
    "named",
    [
        {"layout_atom": "f()"},
        {"layout_atom": "A; int b"},
        {"layout_atom": "A{}"},
        {"layout_atom": 'A<"x">'},
        {"layout_atom": "A\n#include"},
        {"layout_atom": "std::thread"},
        {"layout_atom": "__builtin_trap"},
        {"layout_atom": "A<sizeof>"},
        {"layout_atom": "A<" + "B" * 400 + ">"},
        {"layout_atom": ""},
        {"element": "int[3]"},
        {"element": ""},
        {"shape": []},
        {"shape": [8] * 9},
        {"shape": [0]},
        {"shape": [-8, 8]},
        {"shape": [1 << 40]},
    ],
)
def test_anything_else_is_refused_before_a_compiler_sees_it(named) -> None:
    asked = {"layout_atom": "A", "shape": [8, 8], "element": "half_t"} | named
    with pytest.raises(Refused, match="must be") as raised:
        probe_source(**asked)
    assert raised.value.kind == "arguments"


def test_a_host_without_a_compiler_says_so(toy, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    with pytest.raises(Refused, match="no compiler"):
        check_smem_layout(toy.include, layout_atom="A", shape=[8], element="half_t")


@pytest.fixture
def compiler() -> None:
    if host_compiler() is None:
        pytest.skip("no compiler with CUDA's headers here")


@pytest.mark.slow
def test_a_layout_of_the_real_headers_is_shown(real, compiler) -> None:
    include = real.checkout.include
    text = check_smem_layout(include, layout_atom=SW128, shape=[128, 64, 3], element="half_t")
    # 8 x 64 halves of 2 bytes, 16 times along the rows, in 3 stages.
    assert text.startswith("It compiles.\nlayout: Sw<3,4,3>")
    assert "block: (_8,_64)" in text
    assert "elements: 24576\nbytes: 49152" in text


@pytest.mark.slow
def test_a_layout_that_does_not_divide_is_told_by_the_compiler(real, compiler) -> None:
    include = real.checkout.include
    text = check_smem_layout(include, layout_atom=SW128, shape=[128, 60], element="half_t")
    assert "It does not compile: " in text
    assert "block shape does not divide the target shape" in text
    assert str(include) not in text


@pytest.mark.slow
def test_a_compiler_that_takes_too_long_is_killed(real, compiler, monkeypatch) -> None:
    monkeypatch.setattr(smem_probe, "COMPILE_S", 0.05)
    with pytest.raises(Refused, match="took more than"):
        check_smem_layout(
            real.checkout.include, layout_atom=SW128, shape=[128, 64], element="half_t"
        )
