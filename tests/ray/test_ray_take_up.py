"""A problem is made ready once, beside builds or candidates of others, ahead of its candidates."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from kopt.actors.cluster import open_cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.pool import RayEvaluator
from kopt.actors.quiet import Quiet
from kopt.candidate import Candidate
from kopt.errors import ProblemError
from kopt.problem import Problem
from kopt.survey import Survey
from kopt.testing.instant_workers import InstantBuilder, InstantWorker

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CLUSTER = ClusterConfig(num_cpus=2, devices=1, build_workers=2, max_retries=0)


class NotingWorker(InstantWorker):
    """Notes what it was asked, in order."""

    def __init__(self, config, device, number, cache_dir, supply=None):
        super().__init__(config, device, number, cache_dir, supply)
        self.notes = Path(cache_dir) / "notes"

    def note(self, line):
        with self.notes.open("a") as notes:
            notes.write(line + "\n")

    def take_up(self, problem):
        self.note(f"take_up {problem.name}")
        if problem.name == "odd":
            raise ProblemError(problem.name, "it is odd")

    def survey(self, problem):
        self.note(f"survey {problem.name}")
        if problem.name == "odd":
            raise ProblemError(problem.name, "it is odd")
        return Survey(sol_us=3.0)

    def evaluate(self, problem, candidate, built):
        self.note(f"evaluate {problem.name}")
        return super().evaluate(problem, candidate, built)


@pytest.fixture(scope="module")
def cluster(running_ray, tmp_path_factory):
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    joining = CLUSTER.model_copy(update={"address": running_ray.address})
    with open_cluster(joining, device="cpu", log_dir=tmp_path_factory.mktemp("logs")) as opened:
        # As on one machine: one worker does all builds.
        yield replace(opened, builds_of_worker=opened.build_workers)
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def evaluator_of(cluster, cache_dir: Path, quiet: str) -> RayEvaluator:
    return RayEvaluator(
        cluster,
        config=CLUSTER,
        evaluate=EvaluateConfig(secret=0),
        cache_dir=cache_dir,
        quiet=Quiet(quiet),
        builder=InstantBuilder,
        worker=NotingWorker,
    )


def test_a_problem_is_surveyed_once_and_is_taken_up_by_that(cluster, tmp_path):
    one, odd = (Problem(name=name, source=f"# {name}") for name in ("one", "odd"))

    async def scenario():
        evaluator = evaluator_of(cluster, tmp_path, "cpu")
        await evaluator.target()
        surveys = await asyncio.gather(*(evaluator.survey(one) for _ in range(3)))
        assert surveys == [Survey(sol_us=3.0)] * 3
        for _ in range(2):  # what failed may be had another time
            with pytest.raises(ProblemError, match="it is odd"):
                await evaluator.survey(odd)
        await evaluator.evaluate(one, Candidate(source="// one", language="cpp"))
        evaluator.close()

    asyncio.run(scenario())
    notes = (tmp_path / "notes").read_text().splitlines()
    assert notes == ["survey one", "survey odd", "survey odd", "evaluate one"]


@pytest.mark.parametrize("quiet", ["cpu", "cuda"])
def test_a_problem_is_taken_up_once_ahead_of_its_candidates(cluster, tmp_path, quiet):
    problems = [Problem(name=name, source=f"# {name}") for name in ("one", "odd")]

    async def scenario():
        evaluator = evaluator_of(cluster, tmp_path, quiet)
        await evaluator.target()
        calls = [
            evaluator.evaluate(problem, Candidate(source=f"// {number}", language="cpp"))
            for problem in problems
            for number in range(2)
        ]
        found = [await call for call in calls]
        load = evaluator.lanes()
        evaluator.close()
        return found, load

    found, load = asyncio.run(scenario())
    assert len(found) == 4
    assert all({"build_queued", "queued"} <= each.timeline_s.keys() for each in found)
    assert [(lane.name, lane.num_calls, lane.num_places) for lane in load] == [
        ("build", 0, 2),
        ("timing", 0, 1),
    ]
    notes = (tmp_path / "notes").read_text().splitlines()
    taken_up = [note for note in notes if note.startswith("take_up")]
    assert taken_up == ["take_up one", "take_up odd"]
    assert sum(note.startswith("evaluate") for note in notes) == 4
    if quiet == "cpu":  # there the device would shut it out later; on a GPU nobody waits for it
        assert notes.index("take_up one") < notes.index("evaluate one")
