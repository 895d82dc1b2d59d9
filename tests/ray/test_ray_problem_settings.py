"""`problems.dtype` and `evaluate.module_mode` reach whoever runs a problem, by both commands."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        if not x.dtype == self.linear.weight.dtype == torch.bfloat16:
            raise TypeError(f"inputs are {x.dtype}, weights {self.linear.weight.dtype}")
        return self.linear(self.drop(x))

def get_inputs():
    return [torch.randn(128, 64)]
"""
WITHOUT_DROPOUT = PROBLEM.replace("class Model(", "class ModelNew(").replace(
    "self.linear(self.drop(x))", "self.linear(x)"
)
"""Right in eval mode alone."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that holds the problem, and beside it a candidate."""
    (tmp_path / "set").mkdir()
    (tmp_path / "set/drop.py").write_text(PROBLEM)
    (tmp_path / "candidate.py").write_text(WITHOUT_DROPOUT)
    return tmp_path


def kopt(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kopt", *arguments, "device=cpu", "evaluate.compile=false"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.soak
def test_eval_runs_modules_in_the_mode_and_dtype_asked_for(folder: Path):
    asked = ["eval", "set", "candidate.py", "--json", "problems.dtype=bfloat16"]
    kinds = {
        mode: json.loads(kopt(folder, *asked, f"evaluate.module_mode={mode}").stdout)["kind"]
        for mode in ("train", "eval")
    }
    assert kinds == {"train": "incorrect", "eval": "correct"}


def test_eval_keeps_the_dtype_that_a_problem_makes(folder: Path):
    answer = kopt(folder, "eval", "set/drop.py", "candidate.py")
    assert answer.returncode == 2
    assert "inputs are torch.float32" in answer.stderr


@pytest.mark.soak
def test_run_searches_in_the_mode_and_dtype_asked_for(folder: Path):
    asked = ["run", "problem=set", "problems=bfloat16", "search.iterations=1", "--json"]
    # In training mode a dropout cannot be rewritten, so that there is no candidate at all.
    train = kopt(folder, *asked, "name=train")
    assert "draws random numbers" in train.stderr + train.stdout
    assert kopt(folder, *asked, "name=eval", "evaluate.module_mode=eval").returncode == 0
    assert list((folder / "runs/eval/best/set-drop").glob("rank1.py"))
    (kept,) = (folder / "runs/eval/problems").glob("*.json")
    assert json.loads(kept.read_text())["dtype"] == "bfloat16"
