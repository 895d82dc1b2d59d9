"""Search in a source tree: definitions first, scopes, nothing found."""

from __future__ import annotations

from kopt.cutlass.index import SourceIndex
from kopt.cutlass.symbols import symbols_of


def places(index: SourceIndex, query: str, **more) -> list[tuple[str, int]]:
    return [(hit.path, hit.line) for hit in index.search(query, **more)]


def test_the_definition_of_a_symbol_comes_before_its_uses(texts) -> None:
    found = places(SourceIndex(texts), "warp_wait")
    assert found[0] == ("include/cute/arch/mma_sm90_toy.hpp", 6)
    assert ("examples/toy/gemm.cu", 2) in found


def test_a_part_of_a_name_finds_it(texts) -> None:
    assert places(SourceIndex(texts), "sw128 atom")[0][0] == "include/cute/atom/traits_sm90_toy.hpp"


def test_a_line_with_all_words_comes_first(texts) -> None:
    found = places(SourceIndex(texts), "64x24x16 F32F16F16 SS")
    assert found[0] == ("include/cute/atom/traits_sm90_toy.hpp", 16)


def test_case_does_not_matter(texts) -> None:
    index = SourceIndex(texts)
    assert places(index, "TILE_TO_SHAPE") == places(index, "tile_to_shape")


def test_a_scope_is_a_folder_a_file_or_a_glob(texts) -> None:
    index = SourceIndex(texts)
    assert {path for path, _ in places(index, "warp_wait", scope="examples")} == {
        "examples/toy/gemm.cu"
    }
    assert {path for path, _ in places(index, "warp_wait", scope="*.cu")} == {
        "examples/toy/gemm.cu"
    }
    assert places(index, "warp_wait", scope="include/cute/layout.hpp") == [
        ("include/cute/layout.hpp", 3)
    ]
    assert places(index, "warp_wait", scope="nowhere") == []


def test_nothing_is_found_for_no_words_and_for_unknown_ones(texts) -> None:
    index = SourceIndex(texts)
    assert places(index, " ::<>() ") == []
    assert places(index, "quaternion") == []


def test_one_file_gives_three_places_at_most() -> None:
    index = SourceIndex({"a.h": "int word;\n" * 50, "b.h": "int other;\nint word;\n"})
    found = places(index, "word")
    assert [path for path, _ in found].count("a.h") == 3
    assert ("b.h", 2) in found


def test_what_a_text_defines() -> None:
    text = (
        "#define CEIL(a) a\n"
        "struct Forward;\n"
        "template <class T>\nstruct Thing : Base<T> {\n"
        "  using Alias = int;\n"
        "  if (x) {\n"
        "};\n"
        "void\nwork(int a)\n{\n  static_assert(true);\n}\n"
        "call(1);\n"
    )
    assert [(each.name, each.line) for each in symbols_of(text)] == [
        ("CEIL", 1),
        ("Thing", 4),
        ("Alias", 5),
        ("work", 9),
    ]
