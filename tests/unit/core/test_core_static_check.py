"""Gate 1: what is a candidate at all, and which kernels it names."""

from __future__ import annotations

import time

import pytest

from kopt.candidate import MAX_SOURCE_BYTES
from kopt.static_check import static_check

PLAIN = """
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        return x
"""

TRITON = """
import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"B": 64})], key=["n"])
@triton.jit
def scale_kernel(x, y, n, B: tl.constexpr):
    pass

from triton import jit as compiled

@compiled
def second(x):
    return x

class ModelNew(torch.nn.Module):
    def forward(self, x):
        try:
            return scale_kernel[(1,)](x)
        except RuntimeError:
            pass
"""

CUDA = '''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cuda_runtime.h>
// __global__ void not_this(int x);
template <typename T>
__global__ void __launch_bounds__(256, (2)) add_rows(const T* __restrict__ a, T* b) {}
__global__ static void finish(float *a) {}
extern "C" void launch(float* a, int n) { finish<<<1, 1>>>(a); }
extern "C" {
  int second_entry(const float *a) { if (a) { return 1; } return 0; }
  static int hidden(int a) { return a; }
}
int outside(int a) { return a; }
"""

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
'''

CPP = '''
import ctypes
import os
import subprocess
import tempfile

import torch

libc = ctypes.CDLL(None)
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
code = """
#include <cmath>
extern "C" void run(void** p, int threads) { if (!p) abort(); }
"""
folder = os.environ.get("KERNEL_DIR") or tempfile.gettempdir()

def load():
    with open("/proc/cpuinfo") as file:
        file.read()
    done = subprocess.run(["g++", "-O3", "-shared", "x.cpp"], capture_output=True)
    if done.returncode:
        raise RuntimeError("no compiler")
    return ctypes.CDLL(os.path.join(folder, "x.so")).run

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.run = load()

    def forward(self, x):
        return x
'''


@pytest.mark.parametrize(
    ("source", "language", "kernels"),
    [
        (PLAIN, "torch", ()),
        (TRITON, "triton", ("scale_kernel", "second")),
        (CUDA, "cuda", ("add_rows", "finish", "launch", "second_entry")),
        (CPP, "cpp", ("run",)),
    ],
)
def test_honest_candidates_pass_and_their_kernels_are_named(source, language, kernels) -> None:
    report = static_check(source, language=language)
    assert report.errors == ()
    assert report.tripwires == ()
    assert report.passed
    assert report.kernels == kernels


def test_a_try_is_noted_and_rejects_nothing() -> None:
    notes = {check.name: check for check in static_check(TRITON, language="triton").evidence}
    assert notes["static:try"].passed
    assert "line 19" in notes["static:try"].detail


def test_a_syntax_error_is_reported_with_its_line() -> None:
    report = static_check("import torch\nclass ModelNew(:\n", language="torch")
    assert not report.passed
    assert report.errors[0].startswith("line 2: ")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "defines no class ModelNew"),
        ("class Model:\n    def forward(self): ...\n", "defines no class ModelNew"),
        ("class ModelNew:\n    x = 1\n", "has no forward"),
        (
            "import torch.nn as nn\nclass Base(nn.Module):\n    x = 1\n"
            "class ModelNew(Base):\n    pass\n",
            "line 4: class ModelNew has no forward",
        ),
        ("def build():\n    class ModelNew:\n        def forward(self): ...\n", "at module level"),
        (PLAIN + "\0", "line 7: the source holds a NUL byte"),
        (PLAIN + "# \ud800", "not UTF-8"),
        ("#" * (MAX_SOURCE_BYTES + 1), f"at most {MAX_SOURCE_BYTES} are read"),
        ("x = " + "(" * 5_000 + ")" * 5_000, ""),
        ("x = " + "-" * 100_000 + "1", ""),
    ],
)
def test_what_cannot_become_a_callable_is_an_error_with_its_reason(source, words) -> None:
    report = static_check(source, language="torch")
    assert not report.passed
    assert len(report.errors) == 1
    assert words in report.errors[0]


@pytest.mark.parametrize(
    "text",
    [
        "class Base(torch.nn.Module):\n    def forward(self, x): return x\n"
        "class ModelNew(Base):\n    pass\n",
        "class Net(torch.nn.Module):\n    def forward(self, x): return x\nModelNew = Net\n",
        "class ModelNew(torch.nn.ReLU):\n    pass\n",
        "class ModelNew(torch.nn.Module):\n    forward = helper\n",
        "class ModelNew(torch.nn.Module):\n    pass\nModelNew.forward = helper\n",
        "from kernels import Fast as ModelNew\n",
        "ModelNew = make_model()\n",
        "if torch.cuda.is_available():\n    class ModelNew(torch.nn.Module):\n"
        "        def forward(self, x): return x\n",
    ],
)
def test_every_way_to_have_a_forward_is_accepted(text) -> None:
    assert static_check("import torch\n" + text, language="torch").errors == ()


def test_a_language_that_the_device_cannot_build_is_an_error() -> None:
    report = static_check(PLAIN, language="cuda", allowed=("cpp", "torch"))
    assert report.errors == ("language cuda cannot be built here; choose one of cpp, torch",)


def test_a_text_without_a_kernel_is_noted_unless_it_claims_none() -> None:
    named = static_check(PLAIN, language="triton").evidence
    assert [check.name for check in named] == ["static:no_kernel"]
    assert static_check(PLAIN, language="torch").evidence == ()


@pytest.mark.parametrize(
    "text",
    [
        "#include " + "__global__ a " * 60_000,
        "#include " + "a\n" * 200_000,
        "#include " + "/* " * 200_000,
        "#include " + 'extern "C" { ' * 60_000,
        "#include " + "__launch_bounds__(((" * 40_000,
        "#include extern " + 'extern "C" a ' * 60_000,
        "/proc/" * 100_000,
    ],
)
def test_no_text_makes_the_check_slow(text) -> None:
    began_s = time.process_time()
    static_check(PLAIN + f"text = {text!r}\n", language="cuda")
    assert time.process_time() - began_s < 10.0
