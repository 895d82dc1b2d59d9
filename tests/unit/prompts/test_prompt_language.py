"""The language of a module text, told from its structure."""

from __future__ import annotations

import warnings

import pytest

from kopt.prompts.language import chosen_language, language_of
from kopt.prompts.parsing import parsed

CASES = [
    ("import triton.language as tl", "triton"),
    ("from triton import jit", "triton"),
    ("def f():\n    import triton", "triton"),
    ("tl = importlib.import_module('triton.language')", "triton"),
    ("try:\n    import triton\nexcept ImportError:\n    triton = None", "triton"),
    ("import helion, triton", "helion"),
    ("import cutlass.cute as cute", "cute"),
    ("from cutlass import cute", "cute"),
    ("CODE = '__global__ void k() {}'", "cuda"),
    ("CODE = f'__global__ void k{n}() {{}}'", "cuda"),
    ("load_inline(name='x', cpp_sources=a, cuda_sources=b)", "cuda"),
    ("ext.load_inline('x', a, b)", "cuda"),
    ("load_inline(name='x', cpp_sources=a)", "cpp"),
    ("load_inline(name='x', cpp_sources=[a], cuda_sources=[])", "cpp"),
    ("load_inline(name='x', cpp_sources=a, cuda_sources=None)", "cpp"),
    (
        "from torch.utils.cpp_extension import load\nload(name='x', sources=['a.cc', 'b.cu'])",
        "cuda",
    ),
    ("import cupy", "cuda"),
    ("CODE = 'extern \"C\" void f();'\nimport ctypes", "cpp"),
    ("CODE = '#include <cmath>'", "cpp"),
    ("import torch", "torch"),
    ("x = torch.load('weights.cu')", "torch"),
    ("# no triton, no __global__ here\nimport torch", "torch"),
    ('"""Better than a __global__ kernel with load_inline."""\nimport torch', "torch"),
    ("def f():\n    '''Not #include.'''\n    return load_inline", "torch"),
    # A kernel's language comes before that of the host code beside it; what is built ahead first.
    ("import triton\nCODE = '#include <cmath>'", "triton"),
    ("import triton\nload_inline('x', a, b)", "cuda"),
    # What does not parse.
    ("def f(:", "torch"),
    ("import triton\ndef f(:", "triton"),
    ("CODE = '''__global__ void k() {}", "cuda"),
    ("", "torch"),
]


@pytest.mark.parametrize(("source", "language"), CASES)
def test_the_language_is_told_from_what_the_code_uses(source: str, language: str) -> None:
    assert language_of(source) == language


def test_an_authors_word_tells_apart_what_is_written_in_several() -> None:
    source = "import triton\nCODE = '__global__ void k() {}'"
    assert chosen_language(source, tree=parsed(source), declared="triton") == "triton"
    assert chosen_language(source, tree=parsed(source), declared="cuda") == "cuda"


def test_an_authors_word_counts_where_nothing_is_used() -> None:
    assert chosen_language("import torch", tree=parsed("import torch"), declared="cpp") == "cpp"


def test_an_authors_word_does_not_turn_one_language_into_another() -> None:
    assert chosen_language("import triton", tree=parsed("import triton"), declared="cuda") == (
        "triton"
    )


def test_an_odd_escape_raises_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert language_of("CODE = '\\d __global__'") == "cuda"


def test_a_text_nested_too_deeply_to_parse_is_told_by_its_lines() -> None:
    assert language_of("import triton\nx = " + "(" * 5_000) == "triton"
