"""Candidates held against mined rules: what is certainly wrong is told, all else passes."""

from __future__ import annotations

import time

import pytest

from kopt.cutlass.validator import cutlass_faults, uses_cutlass

MODULE = '''import os
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cute/tensor.hpp>
using namespace cute;
BODY
"""
INCLUDE = "/opt/toy"
made = load_inline(
    name="made",
    cpp_sources="void f();",
    cuda_sources=CUDA,
    functions=["f"],
    extra_include_paths=[f"{INCLUDE}/include"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return x
'''


def module(body: str, **replaced: str) -> str:
    """The first line of the body is line 8 of the module."""
    source = MODULE.replace("BODY", body)
    for old, new in replaced.items():
        source = source.replace(old, new)
    return source


WRONG = {
    "a number out of range": (
        "__global__ void k() {\n  warp_wait<8>();\n}",
        "line 9: warp_wait<8> breaks static_assert(N >= 0 && N <= 7 (warp_wait: N must be in range "
        "[0, 7])), include/cute/arch/mma_sm90_toy.hpp:8",
    ),
    "a constant of the text": (
        "constexpr int STAGES = 9;\n__global__ void k() { cute::warp_wait<STAGES>(); }",
        "line 9: warp_wait<STAGES> breaks",
    ),
    "a type of the wrong size": (
        "using Load = Copy_Atom<SM80_TOY_COPY<uint16_t>, half_t>;\nauto load = Load{};",
        "line 8: SM80_TOY_COPY<uint16_t> breaks static_assert(sizeof(T) == 4",
    ),
    "an atom with another N": (
        "using Op = SM90_64x20x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>;",
        "line 8: toy 9.1.2 has no atom SM90_64x20x16_F32F16F16_SS; near are "
        "SM90_64x16x16_F32F16F16_SS, SM90_64x24x16_F32F16F16_SS, SM90_64x8x16_F32F16F16_SS",
    ),
    "a tile that its block does not divide": (
        "auto s = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{},\n"
        "                       make_shape(Int<128>{}, Int<60>{}, Int<3>{}));",
        "line 8: tile_to_shape: Layout_K_SW128_Atom<half_t> is a block of 8 x 64 elements, and 64 "
        "does not divide the extent 60 of mode 1",
    ),
    "a tile through aliases": (
        "constexpr int BM = 96;\nusing Block = GMMA::Layout_MN_SW128_Atom<cutlass::bfloat16_t>;\n"
        "using Tile = Shape<Int<BM>, _64>;\nauto s = tile_to_shape(Block{}, Tile{});",
        "line 11: tile_to_shape: Layout_MN_SW128_Atom<cutlass::bfloat16_t> is a block of 64 x 8",
    ),
    "a header that is not there": (
        "#include <cute/layouts.hpp>",
        "line 8: toy 9.1.2 has no header cute/layouts.hpp",
    ),
    "a header of another folder": (
        "#include <cutlass/tensor.hpp>",
        "has no header cutlass/tensor.hpp; there is cute/tensor.hpp",
    ),
    "a template that is used": (
        "template <int N> __global__ void k() { warp_wait<8>(); }\nvoid f() { k<1><<<1, 1>>>(); }",
        "line 8: warp_wait<8> breaks",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_certainly_wrong_is_told_with_its_line_and_rule(toy_tree, name: str) -> None:
    body, said = WRONG[name]
    (fault,) = cutlass_faults(module(body), trees=[toy_tree])
    assert said in fault
    assert "\n" not in fault


HONEST = {
    "within range": "__global__ void k() { warp_wait<7>(); }",
    "a template parameter": "template <int N> __global__ void k() { warp_wait<N>(); }",
    "a comment": "// warp_wait<8>() and SM90_64x20x16_F32F16F16_SS\n/* warp_wait<9>() */",
    "a string": 'const char* words = "warp_wait<8>() SM90_64x20x16_F32F16F16_SS";',
    "a branch that is off": (
        "#if 0\n__global__ void k() { warp_wait<8>(); }\n#include <cute/no.hpp>\n#endif"
    ),
    "a guarded header": "#if __has_include(<cute/no.hpp>)\n#include <cute/no.hpp>\n#endif",
    "a macro that nobody uses": "#define LATER warp_wait<8>()\n#define TWO \\\n  warp_wait<8>()",
    "a template that nobody uses": "template <class T> void never() { warp_wait<8>(); }",
    "a discarded statement": (
        "template <int N> void k() { if constexpr (N > 99) warp_wait<8>(); }\nvoid f() { k<1>(); }"
    ),
    "a function of its own": "template <int N> void warp_wait() {}\nvoid k() { warp_wait<8>(); }",
    "another namespace": "void k() { mine::warp_wait<8>(); }",
    "a member": "void k(Thing thing) { thing.warp_wait<8>(); }",
    "a comparison": "bool k(int warp_wait) { return warp_wait < 8; }",
    "an atom of its own": (
        "struct SM90_64x20x16_F32F16F16_SS {};\nusing A = SM90_64x20x16_F32F16F16_SS;"
    ),
    "an atom pasted by the preprocessor": (
        "#define OP(n) SM90_64x##n##x16_F32F16F16_SS\n"
        "using SM90_64x20x16_F32F16F16_XX_T = OP(24);\nusing B = SM90_64x20x16_F32F16F16_YY;"
    ),
    "an atom of a header of its own": '#include "atoms.h"\nusing A = SM90_64x20x16_F32F16F16_SS;',
    "a type that it redefines": (
        "struct uint16_t {};\nauto load = Copy_Atom<SM80_TOY_COPY<uint16_t>, int>{};"
    ),
    "an alias that nobody uses": "using Load = Copy_Atom<SM80_TOY_COPY<uint16_t>, half_t>;",
    "a tile of multiples": (
        "auto s = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_128, _64, _3>{});"
    ),
    "a tile of another type": (
        "auto s = tile_to_shape(GMMA::Layout_K_SW128_Atom<uint8_t>{}, Shape<_8, _128>{});"
    ),
    "a tile that is dynamic": (
        "auto s = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, make_shape(m, n));"
    ),
    "a nested tile": (
        "auto s = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{},"
        " make_shape(make_shape(_4{}, _2{}), _64{}));"
    ),
    "a constant that is declared twice": (
        "constexpr int N = 9;\nvoid a() { constexpr int N = 1; warp_wait<N>(); }"
    ),
    "braces that do not match": (
        "#if A\nvoid k() {\n#else\nvoid k(int) {\n#endif\n  warp_wait<8>();\n}"
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_may_be_right_passes(toy_tree, name: str) -> None:
    assert cutlass_faults(module(HONEST[name]), trees=[toy_tree]) == ()


BAD = "__global__ void k() { warp_wait<8>(); }"
UNSURE = {
    "another tree": {'"/opt/toy"': '"/opt/other"'},
    "a folder made at run time": {'"/opt/toy"': 'os.environ["CUTLASS"]'},
    "another folder first": {"=[f": '=["/opt/mine", f'},
    "inside a try": {
        "made = load": "try:\n  made = load",
        "\n)\n": "\n  )\nexcept OSError: pass\n",
    },
    "inside an if": {"made = load": "if os.name:\n  made = load"},
    "inside a function": {"made = load": "def build():\n  return load"},
    "a source that is changed": {"cuda_sources=CUDA": 'cuda_sources=CUDA.replace("8", "1")'},
    "a source that is bound twice": {"INCLUDE =": 'CUDA = ""\nINCLUDE ='},
    "a source that is formatted": {"cuda_sources=CUDA": "cuda_sources=CUDA % ()"},
    "a raw string in C++": {"using namespace": 'const char* raw = R"(x)"; using namespace'},
    "a text that does not parse": {"class ModelNew": "class class"},
}


@pytest.mark.parametrize("name", UNSURE)
def test_what_is_not_certain_to_be_compiled_against_the_tree_passes(toy_tree, name: str) -> None:
    assert cutlass_faults(module(BAD), trees=[toy_tree]) != ()
    assert cutlass_faults(module(BAD, **UNSURE[name]), trees=[toy_tree]) == ()


def test_headers_are_judged_only_where_every_folder_is_known(toy_tree) -> None:
    source = module("#include <cute/layouts.hpp>")
    assert cutlass_faults(source, trees=[toy_tree]) != ()
    second = source.replace('/include"]', '/include", "/opt/mine"]')
    assert cutlass_faults(second, trees=[toy_tree]) == ()
    flagged = source.replace("functions=", 'extra_cuda_cflags=["-I", "/x"], functions=')
    assert cutlass_faults(flagged, trees=[toy_tree]) == ()


def test_sources_may_be_sums_lists_and_flags(toy_tree) -> None:
    source = module(BAD).replace("cuda_sources=CUDA", "cuda_sources=[CUDA + '']")
    source = source.replace(
        'extra_include_paths=[f"{INCLUDE}/include"]',
        'extra_cuda_cflags=["-O3", "-I" + INCLUDE + "/include"]',
    )
    (fault,) = cutlass_faults(source, trees=[toy_tree])
    assert fault.startswith("line 4 of the native source: warp_wait<8>")


def test_modules_without_cutlass_are_not_looked_at(toy_tree) -> None:
    assert not uses_cutlass("import torch\n")
    assert cutlass_faults("import torch\n", trees=[toy_tree]) == ()
    plain = module(BAD).replace("#include <cute/tensor.hpp>", "#include <cuda.h> // cute/tensor")
    assert cutlass_faults(plain, trees=[toy_tree]) == ()


def test_faults_are_bounded_and_each_is_told_once(toy_tree) -> None:
    body = "\n".join(f"void k{n}() {{ warp_wait<{n}>(); warp_wait<{n}>(); }}" for n in range(8, 40))
    faults = cutlass_faults(module(body), trees=[toy_tree])
    assert len(faults) == len(set(faults)) == 8


@pytest.mark.parametrize(
    "body",
    [
        "<" * 50_000,
        "warp_wait<" * 5_000,
        "tile_to_shape(" * 5_000,
        "using A = " * 5_000,
        "template <class T> " * 5_000,
        "constexpr int A = 1; " * 3_000,
        "".join(f"constexpr int A{n} = 9; using B{n} = A{n};" for n in range(3_000)),
        "".join(f"template <int N> void k{n}() {{ warp_wait<1>(); }}" for n in range(3_000)),
        "SM90_64x16x16_A_B " * 4_000,
        "a::" * 20_000,
    ],
)
def test_hostile_texts_take_little_time(toy_tree, body: str) -> None:
    began_s = time.perf_counter()
    cutlass_faults(module(body), trees=[toy_tree])
    assert time.perf_counter() - began_s < 5.0
