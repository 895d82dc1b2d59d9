"""Candidates a second through the real driver, trees, journal and Ray, with instant evaluators.

Usage: python scripts/bench_driver.py [trees=200] [candidates=60] [devices=2] [in_flight=64]
           [keep=FOLDER] [--json]

Everything is what `kopt run` uses (run folder, journal, cached evaluator, Ray actors on their
lanes, progress) but for the work itself: candidates are written in the driver, builds and verdicts
come at once. `keep` leaves the run folder there. The last line with --json is one object:
candidates, wall_s, candidates_per_s, driver_cpu_ms (of the driver's processor for each candidate,
Ray's threads in it included: a busy host does not change it much), driver_rss_mb; and of a process
that does what `kopt resume` does before it goes on (folder read, journal folded, every tree and
verdict rebuilt): resume_s, resume_cpu_s, resume_rss_mb (most memory).
"""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from kopt.actors.cache.facts import judging_facts
from kopt.actors.cache.kinds import open_store
from kopt.actors.cached_evaluator import CachedEvaluator
from kopt.actors.cluster import open_cluster
from kopt.actors.pool import RayEvaluator
from kopt.actors.quiet import Quiet
from kopt.cli.collector import calm_collector
from kopt.cli.job import Job, ObservedSink, make_tasks, spent, write_job_manifest
from kopt.cli.progress import Progress
from kopt.cli.resume import kept_problems, resumed_config
from kopt.cli.sitting import sit
from kopt.clock import SystemClock
from kopt.config import RunConfig, load
from kopt.data.fold import fold, verdict_cache
from kopt.data.journal import Journal
from kopt.data.rundir import RunDir
from kopt.driver.loop import Driver, Pace
from kopt.evaluation import from_json
from kopt.problem import Problem
from kopt.testing.fakes import ScriptedProgrammer
from kopt.testing.instant_workers import InstantBuilder, InstantWorker

DEFAULTS = {"trees": 200, "candidates": 60, "devices": 2, "in_flight": 64}
RESUME = "resume"
"""Names the run folder that a process of its own takes up."""


def main() -> None:
    """Run and print."""
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    if RESUME in given:
        print(json.dumps(take_up(RunDir.open(given[RESUME]))))
        return
    keep = given.pop("keep", None)
    unknown = set(given) - set(DEFAULTS)
    if unknown:
        sys.exit(f"unknown {', '.join(sorted(unknown))}; there are: {', '.join(DEFAULTS)}, keep")
    options = {**DEFAULTS, **{key: int(value) for key, value in given.items()}}
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(keep or folder), **options)
    print(
        f"{result['candidates']} candidates in {result['wall_s']:.1f} s: "
        f"{result['candidates_per_s']:.0f} a second, driver {result['driver_cpu_ms']:.2f} ms of "
        f"processor each, {result['driver_rss_mb']:.0f} MB; resumed in {result['resume_s']:.1f} s "
        f"({result['resume_cpu_s']:.1f} s of processor, {result['resume_rss_mb']:.0f} MB)",
        file=sys.stderr,
    )
    if "--json" in sys.argv:
        print(json.dumps(result))


def measure(
    root: Path, *, trees: int, candidates: int, devices: int, in_flight: int
) -> dict[str, float]:
    """Run the fleet once in a new run folder below root, and take it up again."""
    problems = [Problem(name=f"bench/{number}", source=f"# {number}") for number in range(trees)]
    config = load(
        {
            "problem": [problem.name for problem in problems],
            "arm": "bench",
            "device": "cpu",
            "search": {"kind": "mcts", "iterations": candidates // 2, "candidates": 2},
            "evaluate": {"secret": 0, "cache": "off"},
            "cluster": {"devices": devices, "build_workers": 1},
        }
    )
    run = RunDir.create(root, "bench", clock=SystemClock())
    for problem in problems:
        run.keep_problem(problem)
    progress = Progress(searches=trees, budget=candidates, console=Console(file=io.StringIO()))
    job = Job(config=config, problems=problems, run_dir=run, observer=progress.observe)
    write_job_manifest(job, secret=0, earlier=None)
    with (
        Journal(run.path, run=run.name, clock=SystemClock()) as journal,
        open_cluster(config.cluster, device="cpu") as cluster,
    ):
        tasks = make_tasks(config, problems, fold([]))

        async def drive() -> tuple[float, float]:
            lanes = RayEvaluator(
                cluster,
                config=config.cluster,
                evaluate=config.evaluate,
                cache_dir=root,
                quiet=Quiet("none"),
                builder=InstantBuilder,
                worker=InstantWorker,
            )
            driver = Driver(
                tasks,
                programmer=ScriptedProgrammer(),
                evaluator=CachedEvaluator(
                    lanes,
                    config=config.evaluate,
                    store=open_store(root, "verdict"),
                    facts=judging_facts,
                ),
                sink=ObservedSink(journal, progress.observe),
                clock=SystemClock(),
                target=await lanes.target(),
                pace=Pace(max_in_flight=in_flight),
            )
            began_s, began_cpu_s = time.monotonic(), time.process_time()
            await driver.run()
            return time.monotonic() - began_s, time.process_time() - began_cpu_s

        with calm_collector():
            wall_s, cpu_s = asyncio.run(drive())
        rss_mb = _most_memory_mb()
    told = sum(task.tree.told() for task in tasks)
    words = [sys.executable, __file__, f"{RESUME}={run.path}"]
    resumed = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    return {
        "trees": trees,
        "candidates": told,
        "wall_s": wall_s,
        "candidates_per_s": told / wall_s,
        "driver_cpu_ms": 1e3 * cpu_s / told,
        "driver_rss_mb": rss_mb,
        **resumed,
    }


def take_up(run: RunDir) -> dict[str, float]:
    """Do what a resumed job does until its driver goes on; return seconds and memory."""
    began_s = time.monotonic()
    config: RunConfig = resumed_config(run, [])
    problems = kept_problems(run, config)
    progress = Progress(searches=len(problems), budget=config.search.budget)
    job = Job(
        config=config,
        problems=problems,
        run_dir=run,
        observer=progress.observe,
        recall=progress.recall,
    )
    with ExitStack() as stack:
        sitting = sit(job, stack)
        known = {k: from_json(record) for k, record in verdict_cache(sitting.earlier).items()}
        spent(sitting.earlier)
    return {
        "resume_s": time.monotonic() - began_s,
        "resume_cpu_s": time.process_time(),
        "resume_rss_mb": _most_memory_mb(),
        "resume_verdicts": len(known),
    }


def _most_memory_mb() -> float:
    """Of this program: what getrusage says of a child includes its parent's, before exec."""
    status = Path("/proc/self/status").read_text()
    return float(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
