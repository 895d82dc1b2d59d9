"""The whole way with a model behind HTTP: prompt, answer, verdict, journal, on CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from kopt.cli import main
from kopt.data.journal import read_events
from kopt.testing.openai_server.process import ServerProcess

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.rand(64, 256)]
"""


def run_kopt(problem: Path, url: str, *, address: str, out: Path, name: str) -> dict[str, object]:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "kopt",
            "run",
            f"problem={problem}",
            "programmer=openai",
            f"programmer.base_url={url}",
            "programmer.backoff_s=0.01",
            "search=best_of_n",
            "search.iterations=2",
            "search.candidates=2",
            "deterministic=true",
            "evaluate.compile=false",
            "evaluate.trials=1",
            "evaluate.timing.max_pairs=6",
            "memory=off",  # it tells times, and the second run's may be others
            f"cluster.address={address}",
            f"out={out}",
            f"name={name}",
            "--json",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def journalled(run: Path, kind: str) -> list[object]:
    return [record.body for record in read_events(run) if record.body.kind == kind]


def test_a_run_with_a_model_is_whole_and_the_same_each_time(
    tmp_path: Path, running_ray: Cluster
) -> None:
    problem = tmp_path / "doubled.py"
    problem.write_text(PROBLEM)
    candidates = []
    for name in ("first", "again"):
        # The server forgets which requests it has met, so that both runs meet the same errors.
        with ServerProcess(author="reference", first_errors=1) as server:
            # The endpoint's port differs from run to run; nothing that is made may depend on it.
            run_kopt(problem, server.url, address=running_ray.address, out=tmp_path, name=name)
            served = server.served()
        assert {each.attempt for each in served} == {0, 1}, "each request met an error"
        made = journalled(tmp_path / name, "candidate_made")
        candidates.append([(event.expansion, event.index, event.candidate) for event in made])
    assert candidates[0] == candidates[1]
    assert len(candidates[0]) == 4

    run = tmp_path / "first"
    answers = journalled(run, "answer_received")
    assert len(answers) == 4
    assert all(answer.tokens_out > 0 for answer in answers[::2])
    assert len(journalled(run, "prompt_sent")) == 2
    judged = [event.eval for event in journalled(run, "verdict")]
    assert [each for each in judged if each["kind"] != "correct"] == []
    assert len(judged) == 4
    assert list((run / "best").glob("*/rank1.py"))


def test_a_vendor_without_a_key_is_refused_before_anything_starts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    problem = tmp_path / "doubled.py"
    problem.write_text(PROBLEM)
    words = (
        f"problem={problem}",
        "programmer=openai",
        "programmer.model=m",
        "programmer.api_key_env=KOPT_TEST_NO_SUCH_KEY",
        "programmer.base_url=https://api.example.com/v1",
        f"out={tmp_path / 'runs'}",
    )
    assert main(["run", *words]) == 2
    said = capfd.readouterr().err
    assert "set KOPT_TEST_NO_SUCH_KEY" in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()
