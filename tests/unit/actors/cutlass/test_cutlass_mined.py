"""Mined trees on disk, where they come from, and the check before a build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kopt.actors.builder import Builder
from kopt.actors.config import EvaluateConfig
from kopt.actors.cutlass.find import checkout_at
from kopt.actors.cutlass.gate import cutlass_refusal
from kopt.actors.cutlass.mined import is_as_mined, known_trees, mined_tree
from kopt.candidate import Candidate
from kopt.errors import ConfigError
from kopt.problem import Problem
from kopt.verdict import CompileFailed

WRONG = '''
from torch import nn
from torch.utils.cpp_extension import load_inline

made = load_inline(
    name="made",
    cpp_sources="void f();",
    cuda_sources="""
#include <cute/tensor.hpp>
void f() { cute::warp_wait<8>(); }
""",
    extra_include_paths=["ROOT/include"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return x
'''


def test_a_tree_is_mined_once_for_each_version(toy, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = mined_tree(toy, toy.texts(), cache_dir=cache)
    (kept,) = (cache / "cutlass").iterdir()
    stamp = kept.stat().st_mtime_ns
    assert mined_tree(toy, toy.texts(), cache_dir=cache) == first
    assert kept.stat().st_mtime_ns == stamp
    (toy.root / "include/cute/more.hpp").write_text("static_assert(true);\n")
    second = mined_tree(toy, toy.texts(), cache_dir=cache)
    assert second.key != first.key
    assert known_trees(cache) == (second, first)
    assert is_as_mined(second)
    assert not is_as_mined(first)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"schema": 1}', "\x00"])
def test_a_broken_file_is_mined_again(toy, tmp_path: Path, content: str) -> None:
    tree = mined_tree(toy, toy.texts(), cache_dir=tmp_path)
    (kept,) = (tmp_path / "cutlass").iterdir()
    kept.write_text(content)
    assert known_trees(tmp_path) == ()
    assert mined_tree(toy, toy.texts(), cache_dir=tmp_path) == tree
    assert json.loads(kept.read_text())["key"] == tree.key


def test_a_cache_that_cannot_be_written_does_no_harm(toy, tmp_path: Path) -> None:
    (tmp_path / "cutlass").write_text("a file")
    assert mined_tree(toy, toy.texts(), cache_dir=tmp_path).origin == "toy 9.1.2"
    assert known_trees(tmp_path) == ()


def test_a_candidate_is_refused_with_its_line_and_rule(toy, tmp_path: Path) -> None:
    source = WRONG.replace("ROOT", str(toy.root))
    assert cutlass_refusal(source, cache_dir=tmp_path) is None  # nothing is mined yet
    mined_tree(toy, toy.texts(), cache_dir=tmp_path)
    refusal = cutlass_refusal(source, cache_dir=tmp_path)
    assert refusal is not None
    assert refusal.startswith("line 10: warp_wait<8> breaks static_assert(N >= 0 && N <= 7")
    assert cutlass_refusal(source.replace("<8>", "<7>"), cache_dir=tmp_path) is None
    assert cutlass_refusal("import torch\n", cache_dir=tmp_path) is None


def test_a_tree_that_has_changed_since_says_nothing(toy, tmp_path: Path) -> None:
    mined_tree(toy, toy.texts(), cache_dir=tmp_path)
    (toy.root / "include/cute/arch/mma_sm90_toy.hpp").write_text("#pragma once\n")
    assert cutlass_refusal(WRONG.replace("ROOT", str(toy.root)), cache_dir=tmp_path) is None


def test_the_builder_gives_the_verdict_before_it_compiles(toy, tmp_path: Path) -> None:
    mined_tree(toy, toy.texts(), cache_dir=tmp_path)
    builder = Builder(EvaluateConfig(), "cpu", str(tmp_path))
    try:
        built = builder.build(
            Problem(name="a/b", source="class Model: ...\n"),
            Candidate(
                source=WRONG.replace("ROOT", str(toy.root)),
                language="cuda",
                strategy="",
                programmer="test",
            ),
        )
    finally:
        builder.close()
    assert isinstance(built.verdict, CompileFailed)
    assert built.verdict.reason.startswith("build: line 10: warp_wait<8> breaks static_assert(")
    assert built.sandbox == "none"  # nothing was run


def test_a_checkout_is_found_by_its_root_or_its_include_folder(toy) -> None:
    found = checkout_at(str(toy.root))
    assert found.root == toy.root
    assert found.origin.startswith("CUTLASS 9.1.2 in ")
    assert checkout_at(str(toy.root / "include")).root == toy.root


def test_a_folder_that_is_no_checkout_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"programmer\.tools\.cutlass: .* has no include/cute"):
        checkout_at(str(tmp_path))
