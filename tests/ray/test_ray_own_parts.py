"""The parts of CONTRIBUTING.md in one run, its replay, and its kernel in a model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from ray.cluster_utils import Cluster

import kopt

pytestmark = [pytest.mark.ray, pytest.mark.slow]

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^(?P<fence>`{3,})python\n(?P<code>.*?)^(?P=fence)$", re.M | re.S)
DEADLINE_S = 400.0


def run_kopt(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kopt", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
        env={**os.environ, "KOPT_CACHE_DIR": str(folder / "cache")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.soak  # a minute; each part has tests of its own
def test_a_run_of_own_parts_alone_is_searched_tracked_replayed_and_loaded(
    tmp_path: Path, running_ray: Cluster
) -> None:
    code = "\n\n".join(block["code"] for block in BLOCK.finditer(GUIDE))
    (tmp_path / "mine.py").write_text(code, encoding="utf-8")
    run_kopt(
        tmp_path,
        *("run", "problems.sources.mine=mine.py:Matmuls", "problem=mine/256", "name=own"),
        *(
            "search.kind=mine.py:Deepest",
            "search.iterations=2",
            "search.candidates=1",
            "reward.kind=mine.py:capped",
        ),
        *("programmer.kind=mine.py:Compiler", "tracker.kind=mine.py:Lines"),
        *("evaluate.languages=mine.py:numba_cpu", "evaluate.compile=false", "device=cpu"),
        f"cluster.address={running_ray.address}",
    )
    run = tmp_path / "runs" / "own"
    points = [json.loads(line) for line in (run / "scalars.jsonl").read_text().splitlines()]
    assert points[-1]["candidates"] == 2.0
    assert points[-1]["searches_ended"] == 1.0
    assert "every step is as journalled" in run_kopt(run, "replay", ".")  # from another folder
    module = kopt.load(run, "mine/256", rank=1)
    inputs = [torch.randn(256, 256) for _ in range(2)]
    with torch.no_grad():
        torch.testing.assert_close(module(*inputs), torch.relu(inputs[0] @ inputs[1]))


@pytest.mark.soak
def test_a_tracker_that_fails_costs_the_run_a_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def broken(config, run):\n    raise OSError('disk full')\n")
    said = run_kopt(
        tmp_path,
        *("run", "problem=builtin/softmax", "search.iterations=1", "evaluate.compile=false"),
        *("tracker.kind=mine.py:broken", "name=own", "device=cpu"),
    )
    assert said.count("OSError: disk full; the run goes on without it") == 1
    assert (tmp_path / "runs" / "own" / "results.parquet").is_file()
