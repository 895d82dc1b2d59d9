"""The profile lane on Ray: candidates that wait together go together; failures stay their own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kopt.actors.cluster import Cluster, open_cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.evidence.pool import MAX_TOGETHER, RayProfiler
from kopt.actors.evidence.profiler import Profile, Subject
from kopt.actors.quiet import Quiet
from kopt.candidate import Candidate
from kopt.errors import ProfileFailed, WorkerLost
from kopt.evaluation import Evaluation
from kopt.evidence import Evidence
from kopt.problem import Problem
from kopt.verdict import Crashed

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PROBLEM = Problem(name="p", source="class Model: ...")


class Worker:
    """Says with how many a candidate came; fails on request."""

    def __init__(self, config, device, number, cache_dir, *, with_rules=False) -> None:
        del config, device, number, cache_dir, with_rules

    def profile(self, subjects: list[Subject]) -> list[Profile]:
        if any("die" in each.candidate.source for each in subjects):
            raise RuntimeError("on purpose")
        together = f"{len(subjects)} together"
        return [
            Profile(evidence=None, failed="nothing ran")
            if "fail" in each.candidate.source
            else Profile(evidence=Evidence(device=together, arch="sm_90", level="static"))
            for each in subjects
        ]


@pytest.fixture(scope="module")
def cluster(running_ray) -> Iterator[Cluster]:
    config = ClusterConfig(address=running_ray.address, devices=1)
    with open_cluster(config, device="cpu") as opened:
        yield opened


async def _all(sources: list[str], cluster: Cluster, cache_dir: Path) -> list[object]:
    profiler = RayProfiler(
        cluster,
        config=ClusterConfig(max_retries=0),
        evaluate=EvaluateConfig(),
        cache_dir=cache_dir,
        quiet=Quiet("cpu"),
        worker=Worker,
    )
    calls = []
    for source in sources:
        candidate = Candidate(source=source, language="torch")
        evaluation = Evaluation(
            verdict=Crashed(stage="forward", log=""),
            problem=PROBLEM.problem_id,
            candidate=candidate.candidate_id,
            language="torch",
            ladder="strict",
            device="cpu",
        )
        calls.append(profiler.profile(PROBLEM, candidate, evaluation))
    try:
        return list(await asyncio.gather(*calls, return_exceptions=True))
    finally:
        await profiler.close()


def test_those_that_wait_together_are_profiled_together(cluster, tmp_path) -> None:
    found = asyncio.run(_all(["a", "b", "c", "fail", "d"], cluster, tmp_path))
    devices = [each.device for each in found if isinstance(each, Evidence)]
    assert devices == [f"{MAX_TOGETHER} together"] * 3 + ["1 together"]
    assert isinstance(found[3], ProfileFailed)
    assert str(found[3]) == "nothing ran"


def test_a_worker_that_breaks_fails_its_candidates_alone(cluster, tmp_path) -> None:
    found = asyncio.run(_all(["die", "a", "b", "c", "d"], cluster, tmp_path))
    assert [type(each) for each in found] == [WorkerLost] * MAX_TOGETHER + [Evidence]
