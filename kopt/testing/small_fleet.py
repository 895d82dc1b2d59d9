"""A fleet without processes: the real driver and journal in a run folder, with given ports."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from kopt.agent_call import Staffed
from kopt.data.fold import RunState, fold
from kopt.data.journal import Journal, read_events
from kopt.driver.limits import Limits, Spent
from kopt.driver.loop import Driver, Pace
from kopt.driver.memories import Remembering
from kopt.driver.replay import resumed_task
from kopt.driver.task import SearchSpec, SearchTask
from kopt.expansion import first_expansion
from kopt.ports import Evaluator, Programmer, Target, WriteRequest
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.search.config import SearchConfig
from kopt.search.searches import create_search
from kopt.testing.fakes import ManualClock

SMALL_TARGET = Target(device="cpu", name="test", arch="x86_64", languages=("torch",))
ARM = "arm"


def small_problem(name: str = "set/one") -> Problem:
    """Return a problem that nobody runs."""
    return Problem(name=name, source=f"# {name}\nclass Model: ...\n")


def small_request(*, first: int, wanted: int, node: int = 0) -> WriteRequest:
    """Return what a programmer is asked for: ideas of the small problem, ROOT's unless it says.

    Args:
        first: idea of the node that comes first.
        wanted: ideas.
        node: that they are for.
    """
    return WriteRequest(
        problem=small_problem(),
        target=SMALL_TARGET,
        search=f"set/one/{ARM}/0",
        arm=ARM,
        seed=0,
        expansion=replace(
            first_expansion(num_candidates=wanted, ordinal=7, first_child=first, seed=5),
            parent_node=node,
        ),
        parent=None,
    )


def small_tasks(
    config: SearchConfig,
    *,
    problems: Sequence[Problem] = (),
    seeds: Sequence[int] = (0,),
    earlier: RunState | None = None,
    arm: str = ARM,
) -> list[SearchTask]:
    """Return a task for each problem and seed; those that `earlier` knows go on from it."""
    tasks = []
    for problem in problems or (small_problem(),):
        for seed in seeds:
            spec = SearchSpec(
                problem=problem,
                arm=arm,
                seed=seed,
                policy=config.kind,
                policy_config={
                    "search": config.model_dump(mode="json"),
                    "reward": asdict(RewardRule()),
                },
            )
            known = None if earlier is None else earlier.searches.get(spec.name)
            if known is not None:
                tasks.append(resumed_task(spec, known))
            else:
                tree = create_search(config, rule=RewardRule(), seed=seed)
                tasks.append(SearchTask(spec=spec, tree=tree))
    return tasks


async def drive_in_folder(
    folder: Path,
    tasks: Sequence[SearchTask],
    *,
    programmer: Programmer,
    evaluator: Evaluator,
    pace: Pace,
    limits: Limits | None = None,
    target: Target = SMALL_TARGET,
    remembering: Remembering | None = None,
    staff: Staffed | None = None,
) -> int:
    """Run tasks to their end with a journal in a run folder; return how many failed.

    Raises:
        StoreError: the journal cannot be written.
    """
    clock = ManualClock()
    with Journal(folder, run=folder.name, clock=clock) as journal:
        driver = Driver(
            tasks,
            programmer=programmer,
            evaluator=evaluator,
            sink=journal,
            clock=clock,
            target=target,
            pace=pace,
            limits=limits,
            spent=Spent(),
            remembering=remembering,
            staff=staff,
        )
        try:
            return await driver.run()
        finally:
            await programmer.close()


def run_in_folder(
    folder: Path,
    tasks: Sequence[SearchTask],
    *,
    programmer: Programmer,
    evaluator: Evaluator,
    pace: Pace | None = None,
    limits: Limits | None = None,
) -> RunState:
    """Run tasks to their end, deterministic unless a pace is given, and return the journal's fold.

    Raises:
        StoreError: the journal cannot be written.
    """
    pace = pace or Pace(max_in_flight=4, deterministic=True)
    asyncio.run(
        drive_in_folder(
            folder, tasks, programmer=programmer, evaluator=evaluator, pace=pace, limits=limits
        )
    )
    return fold(read_events(folder))
