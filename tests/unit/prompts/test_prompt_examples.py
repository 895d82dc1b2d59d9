"""The programs that prompts show: they pass gate 1, and compute what the prompt says they do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.prompts.language import language_of
from kopt.prompts.templates import example
from kopt.static_check import static_check

CHECK = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import candidate
model = candidate.ModelNew(7).to(sys.argv[2])
bias, x = torch.randn(7), torch.randn(33, 5, 7)
model.load_state_dict({"bias": bias})
with torch.no_grad():
    out = model(x.to(sys.argv[2]).transpose(0, 1).contiguous().transpose(0, 1))
torch.testing.assert_close(out.cpu(), (x + bias).abs(), rtol=0.0, atol=0.0)
print("equal")
"""
AGAIN = """
import subprocess
subprocess.run = None  # whoever builds again fails
del sys.modules["candidate"]
import candidate
print("found")
"""


def source(language: str) -> str:
    return example(language, arch_flag="-arch=sm_90") if language == "cuda" else example(language)


@pytest.mark.parametrize("language", ["triton", "cuda", "cpp"])
def test_examples_pass_gate_1_in_their_language(language) -> None:
    report = static_check(source(language), language=language, allowed=(language,))
    assert report.passed
    assert report.kernels == (("run",) if language == "cpp" else ("bias_abs",))
    assert language_of(source(language)) == language


def run(
    language: str, folder: Path, *, code: str = CHECK, device: str = "cpu", **environment: str
) -> str:
    (folder / "candidate.py").write_text(source(language), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), device],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_the_cpp_example_is_right_and_is_built_once(tmp_path: Path) -> None:
    build = tmp_path / "build"
    build.mkdir()
    said = run("cpp", tmp_path, code=CHECK + AGAIN, KOPT_BUILD_DIR=str(build))
    assert said.split() == ["equal", "found"]


def test_the_triton_example_is_right_under_the_interpreter(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    assert run("triton", tmp_path, TRITON_INTERPRET="1") == "equal"


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("language", ["triton", "cuda"])
def test_the_gpu_examples_are_right_on_a_gpu(language, tmp_path: Path) -> None:
    assert run(language, tmp_path, device="cuda") == "equal"
