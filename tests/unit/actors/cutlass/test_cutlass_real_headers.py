"""The real headers of the package nvidia-cutlass: search, mining, and the check of candidates."""

from __future__ import annotations

import time

import pytest

from kopt.actors.cutlass.find import checkout_at
from kopt.cutlass.calls import ReadFile, Search
from kopt.cutlass.constraint_text import constraints_text
from kopt.cutlass.mining import mine
from kopt.cutlass.validator import cutlass_faults

MODULE = '''
from torch import nn
from torch.utils.cpp_extension import load_inline

made = load_inline(
    name="made",
    cpp_sources="void f();",
    cuda_sources=r"""
#include <cute/tensor.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
using namespace cute;
BODY
""",
    extra_include_paths=["ROOT/include"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return x
'''


@pytest.fixture(scope="module")
def tree(real):
    checkout = real.checkout
    return mine(real.texts(), root=str(checkout.root), origin=checkout.origin)


def test_a_wgmma_atom_is_found_by_words_and_read(real) -> None:
    text = real.answer(Search(query="wgmma 64x128x16 F32F16F16 SS", path=None))
    assert "MMA_64x128x16_F32F16F16_SS" in text
    text = real.answer(Search(query="SM90_64x128x16_F32F16F16_SS", path=None))
    place = text.split("\n")[0]
    path, _, line = place.rpartition(":")
    assert path == "include/cute/atom/mma_traits_sm90_gmma.hpp"
    read = real.answer(ReadFile(path=path, start=int(line), lines=1))
    assert "using SM90_64x128x16_F32F16F16_SS =" in read


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("tile_to_shape", "include/cute/layout.hpp"),
        ("Layout_K_SW128_Atom", "include/cute/atom/mma_traits_sm90_gmma.hpp"),
        ("warpgroup_wait", "include/cute/arch/mma_sm90_gmma.hpp"),
        ("PipelineTmaAsync", "include/cutlass/pipeline/sm90_pipeline.hpp"),
        ("setmaxnreg", "include/cutlass/arch/reg_reconfig.h"),
    ],
)
def test_symbols_are_found_where_they_are_defined(real, query: str, path: str) -> None:
    assert real.answer(Search(query=query, path=None)).startswith(f"{path}:")


def test_a_search_after_the_first_takes_less_than_a_third_of_a_second(real) -> None:
    real.answer(Search(query="first", path=None))
    taken_s = []
    for query in ("cp.async zfill", "tma load multicast", "ldmatrix x4 trans", "stmatrix", "mma"):
        began_s = time.process_time()
        real.answer(Search(query=query, path=None))
        taken_s.append(time.process_time() - began_s)
    assert sorted(taken_s)[len(taken_s) // 2] < 0.3


def test_known_rules_are_mined(tree) -> None:
    rules = {(each.entity, each.condition) for each in tree.constraints if each.is_checkable}
    assert ("warpgroup_wait", "N >= 0 && N <= 7") in rules
    assert ("SM80_CP_ASYNC_CACHEGLOBAL", "sizeof(TS) == 16") in rules
    assert any(each.m == 64 and each.k == 16 and 256 in each.ns for each in tree.families)
    assert {each.name: each.bits for each in tree.smem_atoms}["Layout_K_SW128_Atom"] == (8, 1024)


def test_the_section_for_hopper_has_its_atoms_and_boxes(tree) -> None:
    text = constraints_text(tree, arch="sm_90", max_characters=2_400)
    assert len(text) <= 2_400
    assert "SM90_64xNx16_…" in text
    assert "smem_box_shape" in text
    assert "sm_90a" in text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("void f() { warpgroup_wait<8>(); }", "WGMMA wait: N must be in range [0, 7]"),
        (
            "using A = MMA_Atom<SM90_64x100x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>>;",
            "near are SM90_64x96x16_F32F16F16_SS",
        ),
        (
            "using L = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{},"
            " Shape<_128, _32>{}));",
            "64 does not divide the extent 32 of mode 1",
        ),
        ("#include <cute/atom/mma_sm90.hpp>", "has no header cute/atom/mma_sm90.hpp"),
        ("void f() { warpgroup_wait<7>(); }", ""),
        (
            "using A = MMA_Atom<SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>>;",
            "",
        ),
    ],
)
def test_candidates_are_held_against_them(tree, body: str, said: str) -> None:
    source = MODULE.replace("BODY", body).replace("ROOT", tree.root)
    faults = cutlass_faults(source, trees=[tree])
    assert len(faults) == bool(said)
    assert all(said in fault for fault in faults)


@pytest.mark.slow
def test_the_tree_s_own_sources_pass(real, tree) -> None:
    """They compile: none may be refused, but for headers that lie in other folders of it."""
    wrong = []
    for path, text in real.texts().items():
        if not path.startswith(("examples/", "include/")) or '"""' in text:
            continue
        source = MODULE.replace("BODY", text).replace("ROOT", tree.root)
        faults = cutlass_faults(source, trees=[tree])
        wrong += [f"{path}: {fault}" for fault in faults if "has no header" not in fault]
    assert wrong == []


def test_the_package_is_a_checkout_as_well(real) -> None:
    assert checkout_at(str(real.checkout.root)).root == real.checkout.root
