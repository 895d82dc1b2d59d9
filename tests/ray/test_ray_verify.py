"""`kopt verify` on a real local Ray: instant workers for the flow, real ones for the verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from kopt.actors.config import ClusterConfig
from kopt.actors.devices.base import describe
from kopt.candidate import Candidate
from kopt.cli import main
from kopt.cli.verify_judge import Judged, judge_all
from kopt.config import RunConfig, load, to_plain
from kopt.data.best import write_best
from kopt.data.fold import fold
from kopt.data.journal import Journal
from kopt.data.journal_files import read_events
from kopt.data.manifest import make_manifest
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, ProblemError
from kopt.ports import Target
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock, correct, hashed_verdict, source_candidate
from kopt.testing.instant_workers import InstantBuilder, InstantWorker
from kopt.testing.sample_journal import write_search

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CONFIG = load({"problem": "mine", "device": "cpu"})
REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        for _ in range(20):
            x = torch.sin(x)
        return x


def get_inputs():
    return [torch.rand(256, 256)]
"""
PROBLEM = Problem(name="mine/sines", source=REFERENCE)
SAME = Candidate(source=REFERENCE.replace("Model(nn", "ModelNew(nn"), language="torch")
LESS = Candidate(source=SAME.source.replace("range(20)", "range(2)"), language="torch")


class RefusingWorker(InstantWorker):
    """Judges no problem named `mine/odd`."""

    def evaluate(self, problem, candidate, built):
        if problem.name == "mine/odd":
            raise ProblemError(problem.name, "it is odd")
        return super().evaluate(problem, candidate, built)


@pytest.fixture(scope="module")
def address(running_ray: Cluster) -> str:
    """Of a Ray that every test joins, as `cluster.address` says."""
    address: str = running_ray.address
    return address


def judged(jobs: list, *, address: str, on_target=lambda target: None) -> dict[int, Judged]:
    found: dict[int, Judged] = {}
    cluster = ClusterConfig(address=address, devices=2)
    judge_all(
        jobs,
        config=CONFIG.model_copy(update={"cluster": cluster}),
        log_dir=None,
        on_target=on_target,
        on_judged=found.__setitem__,
        builder=InstantBuilder,
        worker=RefusingWorker,
    )
    return found


@pytest.fixture(scope="module", autouse=True)
def by_value():
    import sys

    import ray

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_every_job_is_judged_once_and_a_broken_problem_costs_its_own_jobs_alone(
    address: str,
) -> None:
    fine = [(PROBLEM, source_candidate(f"# {number}\n")) for number in range(6)]
    odd = (Problem(name="mine/odd", source="class Model: ...\n"), source_candidate("# odd\n"))
    targets: list[Target] = []
    found = judged([*fine, odd], address=address, on_target=targets.append)
    assert sorted(found) == list(range(7))
    assert found[6] == "problem mine/odd: it is odd"
    for position, job in enumerate(fine):
        record = found[position]
        assert not isinstance(record, str)
        assert record["kind"] == hashed_verdict(*job).kind
    assert [target.name for target in targets] == ["instant"]


def test_a_refused_device_ends_it_before_anything_is_judged(address: str) -> None:
    def refuse(target: Target) -> None:
        raise ConfigError(f"not on {target.name}")

    with pytest.raises(ConfigError, match="not on instant"):
        judged([(PROBLEM, source_candidate("# 1\n"))], address=address, on_target=refuse)


def quick(tmp_path: Path) -> RunConfig:
    evaluate = {
        "compile": False,
        "trials": 1,
        "memory_gib": 4.0,
        "timing": {"min_pairs": 4, "max_pairs": 4, "block_ms": 4.0},
    }
    return load(
        {
            "problem": "mine/sines",
            "device": "cpu",
            "out": str(tmp_path),
            "evaluate": evaluate,
            "cluster": {"num_cpus": 2},
        }
    )


@pytest.mark.alone
def test_a_claim_that_cheats_or_does_not_repeat_does_not_hold(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = RunDir(tmp_path / "first")
    run.path.mkdir()
    run.keep_problem(PROBLEM)
    # Neither claim is true: one computes something else, one is the reference itself.
    slots = [(LESS, correct(9.0)), (SAME, correct(5.0))]
    with Journal(run.path, run=run.name, clock=ManualClock()) as sink:
        write_search(sink, problem=PROBLEM, seed=0, expansions=[[slot] for slot in slots])
    here = describe("cpu")
    run.write_manifest(
        make_manifest(
            to_plain(quick(tmp_path)),
            name=run.name,
            created_ns=0,
            argv=["kopt"],
            device={"kind": "cpu", "name": here.name, "arch": here.arch, "count": 1},
        )
    )
    write_best(run, fold(read_events(run.path)))
    assert main(["verify", str(run.path), "--json"]) == 1
    record = json.loads(capfd.readouterr().out)
    less, same = record["wins"]
    assert less["why"].startswith("incorrect: values:")
    assert same["found"] < 3.0
    assert "claimed by" in same["why"] or "no faster" in same["why"]
    assert (record["claimed"], record["failed"], record["holds"]) == (2, 2, False)


def test_kernelbench_samples_are_scored_and_what_vanishes_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], address: str
) -> None:
    clone, folder = tmp_path / "KernelBench", tmp_path / "mine"
    for level in (1, 2, 3):
        (clone / "KernelBench" / f"level{level}").mkdir(parents=True)
    folder.mkdir()
    (clone / "KernelBench" / "level1" / "3_Sines.py").write_text(REFERENCE)
    for number, candidate in enumerate((SAME, LESS)):
        path = folder / f"level_1_problem_3_sample_{number}_kernel.py"
        path.write_text(candidate.source)
    claims = [{"sample_id": number, "correctness": True, "runtime": 1.0} for number in (0, 1)]
    (folder / "eval_results.json").write_text(json.dumps({"3": claims}))
    settings = ["device=cpu", "evaluate.compile=false", "evaluate.trials=1"]
    settings += ["evaluate.timing.max_pairs=4", "evaluate.timing.min_pairs=4"]
    settings += [f"cluster.address={address}"]
    arguments = ["verify", str(folder), "--kernelbench", str(clone), "--json", *settings]
    assert main(arguments) == 1
    record = json.loads(capfd.readouterr().out)["kernelbench"]
    assert [row["standing"] for row in record["results"]] == ["holds", "vanished"]
    assert record["ladder"] == "kernelbench"
    entries = json.loads((folder / "kopt" / "eval_results.json").read_text())["3"]
    assert [entry["correctness"] for entry in entries] == [True, False]
    assert entries[0]["runtime"] > 0
    assert entries[1]["runtime"] == -1.0
