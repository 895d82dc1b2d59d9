"""Candidates a second through the real driver, trees, journal and Ray, with instant evaluators.

Usage: python scripts/bench_driver.py [trees=200] [candidates=60] [devices=2] [in_flight=64]
           [--json]

Everything is what `kopt run` uses (Ray actors on their lanes, the journal on disk) but for the work
itself: candidates are written in the driver, builds and verdicts come at once. The last line with
--json is one object: candidates, wall_s, candidates_per_s, driver_cpu_ms (of the driver's
processor for each candidate, Ray's threads in it included: a busy host does not change it much),
driver_rss_mb, resume_s (to fold the journal and rebuild every tree, as `kopt resume` does before
it goes on), resume_rss_mb (most memory by then).
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from kopt.actors.cluster import open_cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.pool import RayEvaluator
from kopt.actors.quiet import Quiet
from kopt.clock import SystemClock
from kopt.data.fold import fold
from kopt.data.journal import Journal, read_events
from kopt.driver.loop import Driver, Pace
from kopt.driver.replay import resumed_task
from kopt.driver.task import SearchSpec, SearchTask
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.search.config import MctsConfig
from kopt.search.searches import create_search
from kopt.testing.fakes import ScriptedProgrammer
from kopt.testing.instant_workers import InstantBuilder, InstantWorker

DEFAULTS = {"trees": 200, "candidates": 60, "devices": 2, "in_flight": 64}


def main() -> None:
    """Run and print."""
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    unknown = set(given) - set(DEFAULTS)
    if unknown:
        sys.exit(f"unknown {', '.join(sorted(unknown))}; there are: {', '.join(DEFAULTS)}")
    options = {**DEFAULTS, **{key: int(value) for key, value in given.items()}}
    result = measure(**options)
    print(
        f"{result['candidates']} candidates in {result['wall_s']:.1f} s: "
        f"{result['candidates_per_s']:.0f} a second, driver {result['driver_cpu_ms']:.2f} ms of "
        f"processor each, {result['driver_rss_mb']:.0f} MB; resumed in {result['resume_s']:.1f} s",
        file=sys.stderr,
    )
    if "--json" in sys.argv:
        print(json.dumps(result))


def measure(*, trees: int, candidates: int, devices: int, in_flight: int) -> dict[str, float]:
    """Run the fleet once."""
    config = MctsConfig(iterations=candidates // 2, candidates=2)
    tasks = [_task(config, number) for number in range(trees)]
    cluster_config = ClusterConfig(devices=devices, build_workers=1)
    with (
        tempfile.TemporaryDirectory() as folder,
        Journal(folder, run="bench", clock=SystemClock()) as journal,
        open_cluster(cluster_config, device="cpu") as cluster,
    ):

        async def drive() -> tuple[float, float]:
            evaluator = RayEvaluator(
                cluster,
                config=cluster_config,
                evaluate=EvaluateConfig(secret=0),
                cache_dir=Path(folder),
                quiet=Quiet("none"),
                builder=InstantBuilder,
                worker=InstantWorker,
            )
            target = await evaluator.target()
            driver = Driver(
                tasks,
                programmer=ScriptedProgrammer(),
                evaluator=evaluator,
                sink=journal,
                clock=SystemClock(),
                target=target,
                pace=Pace(max_in_flight=in_flight),
            )
            began_s, began_cpu_s = time.monotonic(), time.process_time()
            await driver.run()
            return time.monotonic() - began_s, time.process_time() - began_cpu_s

        wall_s, cpu_s = asyncio.run(drive())
        rss_mb = _most_memory_mb()
        resume_s = _time_resume(Path(folder), tasks)
    told = sum(task.tree.told() for task in tasks)
    return {
        "trees": trees,
        "candidates": told,
        "wall_s": wall_s,
        "candidates_per_s": told / wall_s,
        "driver_cpu_ms": 1e3 * cpu_s / told,
        "driver_rss_mb": rss_mb,
        "resume_s": resume_s,
        "resume_rss_mb": _most_memory_mb(),
    }


def _time_resume(folder: Path, tasks: list[SearchTask]) -> float:
    """Return the seconds until every search could go on from the journal alone."""
    began_s = time.monotonic()
    state = fold(read_events(folder))
    for task in tasks:
        resumed_task(task.spec, state.searches[task.spec.name])
    return time.monotonic() - began_s


def _most_memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _task(config: MctsConfig, number: int) -> SearchTask:
    spec = SearchSpec(
        problem=Problem(name=f"bench/{number}", source=f"# {number}"),
        arm="bench",
        seed=0,
        policy="mcts",
        policy_config={"search": config.model_dump(), "reward": {}},
    )
    return SearchTask(spec=spec, tree=create_search(config, rule=RewardRule(), seed=0))


if __name__ == "__main__":
    main()
