"""Mining of a small tree: which rules there are, whose they are, and which hold for certain."""

from __future__ import annotations

import json

import pytest

from kopt.cutlass.constraint import tree_from_json
from kopt.cutlass.mining import mine, tree_key
from kopt.cutlass.scopes import Scan, blanked, template_of


def rule(tree, entity: str, message: str = ""):
    (found,) = [
        each for each in tree.constraints if each.entity == entity and message in each.message
    ]
    return found


def test_an_assertion_is_kept_with_its_owner_message_and_place(toy_tree) -> None:
    found = rule(toy_tree, "warp_wait")
    assert found.kind == "function"
    assert found.parameters == ("N",)
    assert found.condition == "N >= 0 && N <= 7"
    assert found.message == "warp_wait: N must be in range [0, 7]"
    assert (found.path, found.line) == ("include/cute/arch/mma_sm90_toy.hpp", 8)
    assert found.arch == "90"
    assert found.is_checkable


def test_parameters_keep_defaults_that_are_numbers(toy_tree) -> None:
    assert rule(toy_tree, "SM80_TOY_COPY", "4 or 16").parameters == ("T", "Bits=128")
    assert rule(toy_tree, "SM80_TOY_COPY", "4 or 16").arch == "80"


def test_what_may_not_apply_is_not_checkable(toy_tree) -> None:
    assert not rule(toy_tree, "SM80_TOY_COPY", "only here").is_checkable  # in an #if
    conditional = rule(toy_tree, "tile_to_shape", "divide")
    assert conditional.is_conditional  # in an if constexpr
    assert not conditional.is_checkable


def test_a_name_that_is_defined_twice_is_not_checkable(toy_tree) -> None:
    found = [each for each in toy_tree.constraints if each.entity == "SM100_TOY_MMA"]
    assert len(found) == 2
    assert not any(each.is_checkable for each in found)


def test_assertions_of_descriptors_are_told_with_the_words_behind_them(toy_tree) -> None:
    found = rule(toy_tree, "make_tma_desc", "2^8")
    assert found.condition == "box[0] <= (uint32_t(1) << 8)"
    assert not found.is_checkable


def test_comments_hold_no_rule(toy_tree) -> None:
    assert all("99" not in each.condition for each in toy_tree.constraints)


def test_atoms_of_one_shape_are_a_family(toy_tree) -> None:
    (wide,) = [each for each in toy_tree.families if each.arch == "90"]
    assert (wide.m, wide.ns, wide.k, wide.suffix) == (64, (8, 16, 24, 32), 16, "F32F16F16_SS")
    assert "SM80_16x8x16_F32F16F16F32_TN" in toy_tree.atoms


def test_layout_atoms_have_their_extents(toy_tree) -> None:
    assert [(each.name, each.bits, each.contiguous) for each in toy_tree.smem_atoms] == [
        ("Layout_K_SW128_Atom", (8, 1024), 1),
        ("Layout_MN_SW128_Atom", (1024, 8), 0),
    ]


def test_headers_are_named_as_they_are_included(toy_tree) -> None:
    assert "cute/tensor.hpp" in toy_tree.headers
    assert "examples/toy/gemm.cu" not in toy_tree.headers


def test_a_mined_tree_comes_back_from_its_json(toy_tree) -> None:
    assert tree_from_json(json.loads(json.dumps(toy_tree.to_json()))) == toy_tree


@pytest.mark.parametrize("broken", [{}, {"schema": 0}, {"schema": 1}, {"schema": 1, "key": 3}])
def test_other_json_is_refused_in_a_line(broken) -> None:
    with pytest.raises(ValueError, match=r"expected schema|no mined tree"):
        tree_from_json(broken)


def test_the_key_changes_with_a_header_and_not_with_an_example(texts) -> None:
    key = tree_key(texts)
    assert tree_key({**texts, "examples/toy/gemm.cu": "other"}) == key
    assert tree_key({**texts, "include/cute/layout.hpp": "other"}) != key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{{{",
        "}}}",
        "static_assert(",
        'static_assert(N, "',
        "template <",
        "/*",
        '"',
        "#if\n(",
        ")",
    ],
)
def test_whatever_the_text_is_mining_raises_nothing(text: str) -> None:
    tree = mine({"include/cute/odd.hpp": text}, root="/", origin="odd")
    assert not any(each.is_checkable for each in tree.constraints)


def test_blanking_keeps_every_place() -> None:
    text = 'a /* b\n c */ "d" // e\nf'
    assert blanked(text) == "a     \n              \nf"
    assert len(blanked(text)) == len(text)


def test_branches_and_spans_of_a_text() -> None:
    scan = Scan("#if A\n#if B\n#endif\nint x;\n#endif\nvoid f() { if (a) { } }\n")
    assert [scan.text[start:end].count("\n") for start, end in scan.branches] == [4]
    assert [scope.name for _, _, scope in scan.spans] == ["f"]
    assert scan.is_balanced


def test_the_parameters_of_the_last_template_count() -> None:
    text = "template <class A>\ntemplate <int N, class... More>\nvoid f"
    assert template_of(text) == (("N", "..."), "void f")
