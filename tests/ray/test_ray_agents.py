"""KernelOPT's roles with a model behind HTTP, the whole way on a CPU; then played again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from kopt.data.fold import RunState, fold
from kopt.data.journal import read_events
from kopt.data.rundir import RunDir
from kopt.driver.replay import replay
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
QUICK = (
    "device=cpu",
    "arm=agents",
    "pipeline=agents",
    "search=beam",
    "search.iterations=2",
    "search.candidates=2",
    "search.width=2",
    "memory=kernelopt",
    "memory.search=on",
    "memory.extractor=model",
    "deterministic=true",
    "evaluate.compile=false",
    "evaluate.trials=1",
    "evaluate.cache=off",
    "evaluate.timing.max_pairs=6",
    "out=.",
)


def kopt_run(folder: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kopt", "run", "problem=doubled.py", f"name={name}"]
    return subprocess.run(
        [*command, *QUICK, *words, "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, running_ray: Cluster) -> Path:
    """A folder with a first run, whose roles a scripted model played."""
    path = tmp_path_factory.mktemp("agents")
    (path / "doubled.py").write_text(PROBLEM)
    with ServerProcess(author="roles", seed=3) as server:
        done = kopt_run(
            path,
            "first",
            "programmer=openai",
            f"programmer.base_url={server.url}",
            "programmer.price.completion_usd_per_mtok=10",
            f"cluster.address={running_ray.address}",
        )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "pipeline agents: planner:" in done.stderr
    return path


def state_of(run: Path) -> RunState:
    return fold(read_events(run))


def made(state: RunState) -> list[tuple[int, int, str, str]]:
    (search,) = state.searches.values()
    return [
        (ordinal, index, each.candidate, each.strategy)
        for ordinal, expansion in search.expansions.items()
        for index, each in expansion.candidates.items()
    ]


def test_every_role_has_its_calls_in_the_journal_and_in_the_bill(folder: Path) -> None:
    state = state_of(folder / "first")
    (search,) = state.searches.values()
    calls = [call for expansion in search.expansions.values() for call in expansion.calls]
    assert {call.agent for call in calls} == {"codegen", "planner", "executor"}
    assert {call.turn for call in calls if call.agent == "planner"} == {0, 1}, "asked, then planned"
    assert len(made(state)) == 4
    answers = [a for expansion in search.expansions.values() for a in expansion.answers.values()]
    assert sum(a.cost_usd for a in answers) == pytest.approx(sum(c.cost_usd for c in calls))
    assert all(call.cost_usd > 0 for call in calls)
    assert any(update.origin == "model" for update in search.memory)
    assert replay(state)


def test_a_recording_plays_the_roles_again_and_grows_the_same_tree(
    folder: Path, running_ray: Cluster
) -> None:
    again = kopt_run(
        folder,
        "again",
        "programmer=recorded",
        "programmer.run=first",
        "programmer.verdicts=true",
        f"cluster.address={running_ray.address}",
    )
    assert again.returncode == 0, again.stderr
    assert made(state_of(folder / "again")) == made(state_of(folder / "first"))
    assert json.loads(again.stdout)["run"]
    assert RunDir(folder / "again").read_manifest()["device"]["recorded_in"] == "first"
    events = [
        [record.body for record in read_events(folder / run) if record.body.kind == "agent_call"]
        for run in ("first", "again")
    ]
    assert [(e.agent, e.slot, e.turn, e.text) for e in events[0]] == [
        (e.agent, e.slot, e.turn, e.text) for e in events[1]
    ]


@pytest.mark.soak
def test_the_whole_ablation_runs_at_a_small_budget(tmp_path: Path) -> None:
    (tmp_path / "doubled.py").write_text(PROBLEM)
    with ServerProcess(author="roles", seed=5) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "kopt", "run", "-m", "experiment=kernelopt/ablation"),
                *("problem=doubled.py", "device=cpu", f"programmer.base_url={server.url}"),
                *("search.iterations=2", "search.candidates=2", "compiled.max_autotune=false"),
                *("evaluate.max_autotune=false", "evaluate.trials=1", "evaluate.cache=off"),
                *("evaluate.timing.max_pairs=6", "out=.", "name=ablation", "--json"),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [job["arm"] for job in told["jobs"]] == [f"C{number}" for number in range(7)]
    assert sorted(told["models"]) == [str(number) for number in range(6)], "C6 compiles no model"
    for job in told["jobs"]:
        state = state_of(tmp_path / "ablation" / job["job"])
        agents = {
            call.agent
            for search in state.searches.values()
            for expansion in search.expansions.values()
            for call in expansion.calls
        }
        assert "codegen" in agents
        learned = [update for search in state.searches.values() for update in search.memory]
        assert job["arm"] != "C2" or not learned
