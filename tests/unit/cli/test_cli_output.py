import subprocess
import sys

import pytest

from kopt.cli.probe_software import parsed_version
from kopt.cli.resume import _place
from kopt.prompts.language import language_of

PROGRAM = """
import os, subprocess, sys
from kopt.cli.output import reserved_stdout, write_json
print("before")
with reserved_stdout() as out:
    print("python print")
    os.write(1, b"raw write\\n")
    subprocess.run(["echo", "child"])
    write_json(out, {"a": 1})
print("after")
"""


def test_only_the_object_reaches_stdout_while_it_is_reserved():
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines() == ["before", '{"a": 1}', "after"]
    assert sorted(answer.stderr.splitlines()) == ["child", "python print", "raw write"]


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ("import triton.language as tl", "triton"),
        ("from triton import jit", "triton"),
        ("import helion", "helion"),
        ("import cutlass.cute as cute", "cute"),
        ("CODE = '__global__ void k() {}'", "cuda"),
        ("load_inline(name='x', cpp_sources=a, cuda_sources=b)", "cuda"),
        ("load_inline(name='x', cpp_sources=a)", "cpp"),
        ("CODE = 'extern \"C\" void f();'\nimport ctypes", "cpp"),
        ("import torch", "torch"),
        ("# no triton, no __global__ here\nimport torch", "torch"),
        ('"""Better than a __global__ kernel with ctypes."""\nimport torch', "torch"),
        ("def f(:", "torch"),
    ],
)
def test_the_language_is_told_from_what_the_code_uses(source: str, language: str):
    assert language_of(source) == language


def test_versions_are_numbers():
    assert parsed_version("2.13.0+cpu") == (2, 13)
    assert parsed_version("3") == (3, 0)


def test_a_resumed_run_has_its_problems_in_the_order_asked():
    patterns = ("my/last.py", "kernelbench/level1/*", "builtin/softmax")
    names = ["builtin/softmax", "kernelbench/level1/10", "kernelbench/level1/9", "last"]
    assert sorted(names, key=lambda name: _place(name, patterns)) == [
        "last",
        "kernelbench/level1/9",
        "kernelbench/level1/10",
        "builtin/softmax",
    ]
