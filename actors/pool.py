"""The Evaluator port on Ray: the build lane on CPUs, then the timing lane, one actor a device.

A device's actor verifies and times one candidate at a time, so nothing is timed beside another
kernel. On the `cpu` device the build and programmer lanes share the cores that are timed, so all
three exclude each other through one `Quiet`.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from kopt.actors.builder import (
    BUILT_BY_IMPORT,
    Builder,
    BuildResult,
    nothing_to_build,
    unbuilt,
)
from kopt.actors.cluster import Cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.actors.lanes import ActorLane
from kopt.candidate import Candidate
from kopt.errors import ConfigError
from kopt.evaluation import Evaluation
from kopt.ports import Target
from kopt.problem import Problem

HUNG_S = 3_600.0
"""A device or build worker that answers nothing for this long is killed; candidates and stages
have deadlines of their own, far below."""


class Quiet:
    """Keeps other work off the cores while a CPU is timed; does nothing for a GPU."""

    def __init__(self, device: str) -> None:
        """Make the lock; only `cpu` needs it."""
        self._lock = asyncio.Lock() if device == "cpu" else None

    async def hold(self, stack: AsyncExitStack) -> None:
        """Enter the lock, until the stack closes."""
        if self._lock is not None:
            await stack.enter_async_context(self._lock)


class RayEvaluator:
    """Judges candidates on the cluster's devices."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        config: ClusterConfig,
        evaluate: EvaluateConfig,
        cache_dir: Path,
        quiet: Quiet,
        builder: type[Any] = Builder,
        worker: type[Any] = DeviceWorker,
    ) -> None:
        """Start the actors.

        Args:
            cluster: that is up.
            config: the cluster's section, for retries.
            evaluate: how candidates are judged; its secret must be set.
            cache_dir: of builds and baselines, on each node.
            quiet: shared with the programmer.
            builder: class of the build workers; tests and benchmarks put their own.
            worker: class of the device workers; likewise.
        """
        self._quiet = quiet
        self._cache_dir = cache_dir
        self._evaluate = evaluate
        self._target: Target | None = None

        def start_builder(number: int) -> Any:  # noqa: ANN401 - Ray types no handle
            del number
            remote = ray.remote(builder).options(**cluster.options("build"))
            return remote.remote(evaluate, cluster.device, str(cache_dir))

        def start_worker(number: int) -> Any:  # noqa: ANN401 - Ray types no handle
            remote = ray.remote(worker).options(**cluster.options("timing"))
            return remote.remote(evaluate, cluster.device, number, str(cache_dir))

        retries = config.max_retries
        self._build = ActorLane(
            "build",
            start_builder,
            size=cluster.build_workers,
            max_retries=retries,
            limit_s=HUNG_S,
        )
        self._devices = ActorLane(
            "timing", start_worker, size=cluster.devices, max_retries=retries, limit_s=HUNG_S
        )

    async def target(self) -> Target:
        """Return the device that candidates are written for.

        Raises:
            ConfigError: the devices differ; one fleet times a problem on one kind of device.
        """
        if self._target is not None:
            return self._target
        targets: list[Target] = await self._devices.each("target")
        if len(set(targets)) > 1:
            names = ", ".join(sorted({target.name for target in targets}))
            raise ConfigError(f"the cluster's devices differ ({names}); join nodes of one kind")
        self._target = targets[0]
        return self._target

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        """Build, verify and time one candidate (the Evaluator port)."""
        asked_s = time.monotonic()
        async with AsyncExitStack() as stack:
            await self._quiet.hold(stack)
            quiet_s = time.monotonic() - asked_s
            built, build_queued_s = await self._built(problem, candidate)
            if built.verdict is not None:
                failed = unbuilt(
                    built,
                    built.verdict,
                    problem,
                    candidate,
                    config=self._evaluate,
                    target=await self.target(),
                )
                return _with_queue(failed, quiet_s + build_queued_s)
            evaluation, device_queued_s = await self._devices.call(
                "evaluate", problem, candidate, built, key=problem.problem_id
            )
            return _with_queue(evaluation, quiet_s + build_queued_s + device_queued_s)

    async def _built(self, problem: Problem, candidate: Candidate) -> tuple[BuildResult, float]:
        if candidate.language not in BUILT_BY_IMPORT:
            return nothing_to_build(candidate, cache_dir=self._cache_dir), 0.0
        built, queued_s = await self._build.call("build", problem, candidate)
        assert isinstance(built, BuildResult)
        return built, queued_s

    def close(self) -> None:
        """Let the idle actors go."""
        self._build.close()
        self._devices.close()


def _with_queue(evaluation: Evaluation, queued_s: float) -> Evaluation:
    return replace(evaluation, timeline_s={"queued": queued_s, **evaluation.timeline_s})
