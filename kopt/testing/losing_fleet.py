"""A fleet on a cluster that loses machines, and what became of its work: lost, repeated, doubled.

The driver, trees, journal, lanes and Ray are the real ones. Workers take a while for a verdict that
is a function of the candidate's id: what is in flight can be lost, and what it comes to is known.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kopt.actors.builder import BuildResult
from kopt.actors.cluster import open_cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.pool import RayEvaluator
from kopt.actors.quiet import Quiet
from kopt.candidate import Candidate
from kopt.clock import SystemClock
from kopt.data.fold import RunState, fold
from kopt.data.journal import Journal, read_events
from kopt.device_health import Quarantine
from kopt.driver.loop import Driver, Pace
from kopt.driver.replay import replay
from kopt.evaluation import Evaluation
from kopt.events import Told, VerdictReached
from kopt.problem import Problem
from kopt.search.config import MctsConfig
from kopt.testing.fakes import ScriptedProgrammer
from kopt.testing.instant_workers import InstantBuilder, InstantWorker
from kopt.testing.small_fleet import small_problem, small_tasks

EVALUATIONS = "evaluations"
"""File beside the journal's folder: problem, candidate and worker of each judgement begun."""


class PacedWorker(InstantWorker):
    """Judges in the time that its cache folder's `pace` says, and notes whom it judged."""

    def __init__(
        self,
        config: EvaluateConfig,
        device: str,
        number: int,
        cache_dir: str,
        supply: object = None,
    ) -> None:
        """Take what a DeviceWorker takes."""
        super().__init__(config, device, number, cache_dir, supply)
        self._folder = Path(cache_dir)

    def evaluate(self, problem: Problem, candidate: Candidate, built: BuildResult) -> Evaluation:
        """Judge, after a while."""
        line = f"{problem.problem_id} {candidate.candidate_id} {self.number}\n".encode()
        notes = os.open(self._folder / EVALUATIONS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(notes, line)  # one write: a process that is killed leaves a line or none
        os.close(notes)
        time.sleep(float((self._folder / "pace").read_text()))
        return super().evaluate(problem, candidate, built)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What became of a fleet's work."""

    candidates: int
    """Told to a tree."""
    lost: int
    """Candidates that the searches' budgets ask for, and no tree was told of."""
    duplicates: int
    """Slots with more than one verdict or told twice, in the journal."""
    repeated: int
    """Evaluations that were begun, beyond one for each verdict: what was in flight when its machine
    was lost."""
    devices: int
    """Places of the lane that judged."""
    wall_s: float
    driver_rss_mb: float
    """Most memory of this process so far."""


def run_fleet_on(
    address: str,
    folder: Path,
    *,
    searches: int,
    candidates: int,
    pace_s: float,
    trouble: Callable[[Callable[[], int]], None],
    on_quarantine: Callable[[Quarantine], None] = lambda quarantine: None,
    devices: int | None = None,
    max_in_flight: int = 24,
    seed: int = 0,
) -> Account:
    """Run searches to their end on a cluster, with trouble beside them, and count.

    Args:
        address: of the cluster.
        folder: empty; holds the journal afterwards.
        searches: trees.
        candidates: of each, an even number.
        pace_s: seconds that a worker takes for a verdict.
        trouble: called in a thread of its own with a function that says how many events the
            journal has; -1 says that the fleet has ended.
        on_quarantine: hears of devices that are given up.
        devices: to use, some of which may join later; None for those that are there.
        max_in_flight: expansions, over all searches.
        seed: of the searches.

    Raises:
        StoreError: the journal contradicts itself: something was lost or doubled.
    """
    config = MctsConfig(iterations=candidates // 2, candidates=2)
    problems = [small_problem(f"set/{number}") for number in range(searches)]
    tasks = small_tasks(config, problems=problems, seeds=(seed,))
    (folder / "pace").write_text(str(pace_s))
    cluster_config = ClusterConfig(address=address, devices=devices, build_workers=2, in_flight=1)
    began_s = time.monotonic()
    with (
        Journal(folder, run="losing", clock=SystemClock()) as journal,
        open_cluster(cluster_config, device="cuda", log_dir=folder) as cluster,
    ):
        is_over = False

        def events() -> int:
            return -1 if is_over else journal.next_seq

        async def drive() -> None:
            nonlocal is_over
            evaluator = RayEvaluator(
                cluster,
                config=cluster_config,
                evaluate=EvaluateConfig(secret=0),
                cache_dir=folder,
                quiet=Quiet("none"),
                builder=InstantBuilder,
                worker=PacedWorker,
                on_quarantine=on_quarantine,
            )
            driver = Driver(
                tasks,
                programmer=ScriptedProgrammer(),
                evaluator=evaluator,
                sink=journal,
                clock=SystemClock(),
                target=await evaluator.target(),
                pace=Pace(max_in_flight=max_in_flight),
            )
            troubling = asyncio.create_task(asyncio.to_thread(trouble, events))
            try:
                await driver.run()
            finally:
                is_over = True
                evaluator.close()
                await troubling

        asyncio.run(drive())
    return account(folder, budget=searches * candidates, wall_s=time.monotonic() - began_s)


def account(folder: Path, *, budget: int, wall_s: float) -> Account:
    """Count what became of a fleet's work, from its journal and its workers' notes.

    Raises:
        StoreError: the journal contradicts itself.
    """
    slots: Counter[tuple[str, str, int, int]] = Counter()
    ran = 0
    for record in read_events(folder):
        body = record.body
        if isinstance(body, VerdictReached | Told):
            slots[record.search, body.kind, body.expansion, body.index] += 1
            ran += isinstance(body, VerdictReached) and not body.cached
    state: RunState = fold(read_events(folder))
    replay(state)
    told = sum(
        len(expansion.told)
        for search in state.searches.values()
        for expansion in search.expansions.values()
    )
    evaluations = [line.split() for line in (folder / EVALUATIONS).read_text().splitlines()]
    return Account(
        candidates=told,
        lost=budget - told,
        duplicates=sum(count - 1 for count in slots.values()),
        repeated=len(evaluations) - ran,
        devices=len({number for _, _, number in evaluations}),
        wall_s=wall_s,
        driver_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def lose_now_and_then(
    lose: Callable[[random.Random], None],
    join: Callable[[], None],
    *,
    every_s: float,
    seed: int = 0,
) -> Callable[[Callable[[], int]], None]:
    """Return trouble: every so many seconds a node is lost, and another joins.

    Args:
        lose: kills one.
        join: adds one, or as many as there are to be.
        every_s: from the end of one loss to the next, > 0.
        seed: of the choice.
    """
    rng = random.Random(seed)

    def trouble(events: Callable[[], int]) -> None:
        while True:
            until_s = time.monotonic() + every_s
            while time.monotonic() < until_s:
                if events() < 0:
                    return
                time.sleep(0.1)
            lose(rng)
            join()

    return trouble
