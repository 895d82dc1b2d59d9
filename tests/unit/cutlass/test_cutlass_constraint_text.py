"""The section of a prompt: what stands first, and how it is bounded."""

from __future__ import annotations

from kopt.cutlass.constraint_text import constraint_lines, constraints_text, fitting


def test_the_section_names_the_folder_the_flag_and_the_atoms_first(toy_tree) -> None:
    text = constraints_text(toy_tree, arch="sm_90", max_characters=4_000, has_tools=True)
    lines = text.split("\n")
    assert lines[0] == "### CUTLASS and CuTe (toy 9.1.2)"
    assert 'extra_include_paths=["/opt/toy/include"]' in text
    assert "SM90 atoms need `-arch=sm_90a`." in lines
    rules = [line for line in lines if line.startswith("- ")]
    assert rules[0] == "- `SM90_64xNx16_…`, N = 8, 16, … 32: F32F16F16_SS"
    assert rules[1].startswith("- `Layout_K_SW128_Atom<T>`: blocks of 8 × n elements, n = 1024")
    assert any(line.startswith("- `warp_wait<N>`: `N >= 0 && N <= 7`") for line in rules)
    assert rules[-1] == "- `SM80_16x8x16_…`: F32F16F16F32_TN"


def test_another_architecture_is_not_told_what_it_has_not(toy_tree) -> None:
    text = constraints_text(toy_tree, arch="sm_80", max_characters=4_000)
    assert "SM90_64" not in text
    assert "SW128" not in text
    assert "SM80_TOY_COPY<T>" in text
    assert "Functions search" not in text


def test_what_may_not_apply_is_not_told(toy_tree) -> None:
    text = constraints_text(toy_tree, arch="sm_90", max_characters=10_000)
    assert "does not divide" not in text


def test_an_odd_architecture_gets_what_is_common(toy_tree) -> None:
    text = constraints_text(toy_tree, arch="gfx", max_characters=4_000)
    assert "### CUTLASS" in text
    assert "SM90_64" not in text


def test_the_section_keeps_to_its_size_and_says_what_it_leaves_out(toy_tree) -> None:
    lines = constraint_lines(toy_tree, arch="sm_90", has_tools=False)
    whole = fitting(lines, max_characters=100_000)
    assert whole == "\n".join(lines)
    for size in range(len(lines[0]), len(whole), 17):
        text = fitting(lines, max_characters=size)
        assert len(text) <= size
        kept = text.count("\n- ") - text.count("more in the source")
        if "more in the source" in text:
            assert f"… {len(lines) - 1 - kept} more in the source" in text


def test_no_room_for_the_head_leaves_the_section_out(toy_tree) -> None:
    lines = constraint_lines(toy_tree, arch="sm_90", has_tools=False)
    assert fitting(lines, max_characters=len(lines[0]) - 1) == ""
    assert fitting((), max_characters=1_000) == ""
