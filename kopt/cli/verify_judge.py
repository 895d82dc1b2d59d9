"""Candidates judged anew, on a cluster of their own: every process fresh, every input secret anew.

Loads ray and torch; the command imports it lazily.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kopt.actors.builder import Builder
from kopt.actors.cluster import open_cluster
from kopt.actors.device_worker import DeviceWorker
from kopt.actors.pool import RayEvaluator
from kopt.actors.quiet import Quiet
from kopt.candidate import Candidate
from kopt.config import RunConfig
from kopt.environment import cache_dir
from kopt.errors import ProblemError, WorkerLost
from kopt.evaluation import EvalJson, to_json
from kopt.ports import Target
from kopt.problem import Problem

Job = tuple[Problem, Candidate]
Judged = EvalJson | str
"""The evaluation, or why there is none: the problem cannot run here, or its worker is gone."""


def judge_all(
    jobs: Sequence[Job],
    *,
    config: RunConfig,
    log_dir: Path | None,
    on_target: Callable[[Target], None],
    on_judged: Callable[[int, Judged], None],
    builder: type[Any] = Builder,
    worker: type[Any] = DeviceWorker,
) -> None:
    """Judge every job, as many at once as the cluster has devices for.

    Args:
        jobs: in the order wanted; those of one problem are best side by side.
        config: its `cluster`, `device` and `evaluate` sections say how; its secret is not used.
        log_dir: where Ray's words go; None drops them.
        on_target: called once with the device, before anything is judged; may raise.
        on_judged: called with a job's position and what became of it, in the order they end.
        builder: class of the build workers; tests put their own.
        worker: class of the device workers; likewise.

    Raises:
        ConfigError: the cluster or device asked for is not there, or whatever on_target raises.
        KeyboardInterrupt: the user stopped it.
    """
    evaluate = config.evaluate.model_copy(update={"secret": secrets.randbits(63)})
    with open_cluster(config.cluster, device=config.device, log_dir=log_dir) as cluster:

        async def run() -> None:
            evaluator = RayEvaluator(
                cluster,
                config=config.cluster,
                evaluate=evaluate,
                cache_dir=cache_dir(),
                quiet=Quiet(cluster.device),
                builder=builder,
                worker=worker,
            )
            on_target(await evaluator.target())
            # Those in flight and one ahead for each device: more would only wait, built.
            room = asyncio.Semaphore((cluster.in_flight + 1) * cluster.devices)

            async def one(position: int, job: Job) -> None:
                async with room:
                    try:
                        found: Judged = to_json(await evaluator.evaluate(*job))
                    except (ProblemError, WorkerLost) as error:
                        found = str(error)
                on_judged(position, found)

            try:
                await asyncio.gather(*(one(position, job) for position, job in enumerate(jobs)))
            finally:
                evaluator.close()

        asyncio.run(run())
