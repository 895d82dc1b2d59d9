"""A compiled model whose launches are fused as a scripted model says, the whole way on a CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from kopt.compiled.record import Apart, from_json
from kopt.data.fold import fold
from kopt.data.journal import read_events
from kopt.testing.openai_server.process import ServerProcess

# Two compiles and a search; its parts are tests of tests/unit/compiled.
pytestmark = [pytest.mark.ray, pytest.mark.soak]

# On a CPU Inductor puts loops that follow each other into one kernel, up to so many arguments.
MODEL = """
import torch
from torch import nn
from torch._inductor.codegen.cpp import CppScheduling

CppScheduling.MAX_FUSED_KERNEL_ARGS_NUM = 1


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(torch.softmax(x, dim=-1), dim=0)


def get_inputs():
    return [torch.randn(64, 48)]
"""


def kopt_run(folder: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "kopt", "run", "problem=soft.py", f"name={name}"),
            *("mode=compiled", "pipeline=agents", "device=cpu", "arm=agents", "search=best_of_n"),
            *("search.iterations=1", "search.candidates=1", "deterministic=true"),
            *("evaluate.compile=false", "evaluate.trials=1", "evaluate.cache=off"),
            *("evaluate.timing.max_pairs=6", "out=.", *words),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def record(run: Path) -> Apart:
    (path,) = (run / "compiled").glob("*/apart.json")
    return from_json(path.read_bytes(), where=str(path))


def test_what_the_model_decides_is_searched_journalled_and_told(
    tmp_path: Path, running_ray: Cluster
) -> None:
    (tmp_path / "soft.py").write_text(MODEL)
    address = f"cluster.address={running_ray.address}"
    with ServerProcess(author="roles", seed=3) as server:
        done = kopt_run(
            tmp_path, "first", "programmer=openai", f"programmer.base_url={server.url}", address
        )
    assert done.returncode == 0, done.stderr
    assert "pipeline agents: strategist: 1 calls" in done.stderr
    first = record(tmp_path / "first")
    assert len(first.choices) > 1
    by_model = first.choices[0]
    assert (by_model.rule_fuses, by_model.fused, by_model.decided_by) == (True, False, "model")
    assert first.subkernels[0].group.places == by_model.before.places
    assert "kept apart by the model: their shapes differ" in first.subkernels[0].group.why
    assert "kept apart by the model: their shapes differ" in done.stdout
    (report,) = json.loads((tmp_path / "first" / "compiled.json").read_text())
    assert report["strategist"] == first.strategist
    assert len(report["decisions"]) == 1
    state = fold(read_events(tmp_path / "first"))
    (call,) = state.calls
    assert call.tokens_in > 0
    assert len(state.searches) == len(first.problems) > 1
    problems = {search.started.problem_name for search in state.searches.values()}
    assert problems == set(first.problems)
