"""The Evaluator and Surveyor ports on Ray: builds on CPUs, then the timing lane, one actor each.

A device's actor judges a few candidates at a time and times them one by one (supervisor/turns.py),
so that nothing is timed beside another kernel. A GPU takes up the next problem beside them.
On the `cpu` device the build and programmer lanes share the cores that are timed: they work beside
each other, and the device alone (quiet.py).
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from kopt.actors.builder import (
    BUILT_AHEAD,
    Builder,
    BuildResult,
    nothing_to_build,
    unbuilt,
)
from kopt.actors.cluster import Cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.actors.lanes import ActorLane
from kopt.actors.metrics import LaneMetrics
from kopt.actors.quiet import Quiet
from kopt.actors.supervisor.supply import Supply
from kopt.actors.ward import ANSWERS_PER_VISIT, DeviceWard
from kopt.candidate import Candidate
from kopt.device_health import DeviceFacts, Quarantine
from kopt.errors import ConfigError, KoptError, WorkerLost
from kopt.evaluation import Evaluation
from kopt.lane import LaneLoad
from kopt.ports import Target
from kopt.problem import Problem
from kopt.survey import Survey

_LOG = logging.getLogger(__name__)
HUNG_S = 3_600.0
"""A device or build worker that answers nothing for this long is killed; candidates and stages
have deadlines of their own, far below."""


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
        on_quarantine: Callable[[Quarantine], None] = lambda quarantine: None,
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
            on_quarantine: hears once of each device that is not to be trusted any more.
        """
        self._quiet = quiet
        self._cache_dir = cache_dir
        self._evaluate = evaluate
        self._target: Target | None = None
        self._ward = DeviceWard(on_quarantine)
        self._num_judged = 0
        self._visiting: asyncio.Task[None] | None = None

        def start_builder(number: int) -> Any:  # noqa: ANN401 - Ray types no handle
            del number
            remote = ray.remote(builder).options(**cluster.options("build"))
            return remote.remote(evaluate, cluster.device, str(cache_dir))

        def start_worker(number: int) -> Any:  # noqa: ANN401 - Ray types no handle
            remote = ray.remote(worker).options(**cluster.options("timing"))
            supply = Supply(
                in_flight=cluster.in_flight,
                warm_children=cluster.warm_children,
                sessions=cluster.sessions,
            )
            return remote.remote(evaluate, cluster.device, number, str(cache_dir), supply)

        retries = config.max_retries
        num_builders = -(-cluster.build_workers // cluster.builds_of_worker)
        self._builders_per_device: float | None = None
        """None: the user says how many builds there are, or they are all on this machine."""
        if config.build_workers is None and config.address != "local":
            self._builders_per_device = num_builders / cluster.devices_here
        self._build = ActorLane(
            "build",
            start_builder,
            size=num_builders,
            started=(num_builders + 1) // 2,
            depth=cluster.builds_of_worker,
            max_retries=retries,
            limit_s=HUNG_S,
        )
        self._devices = ActorLane(
            "timing",
            start_worker,
            size=cluster.devices,
            started=cluster.devices_here,
            max_retries=retries,
            limit_s=HUNG_S,
            depth=cluster.in_flight,
            ward=self._ward,
            keys=cluster.sessions,
        )
        self._taken_up: deque[str] = deque(maxlen=cluster.sessions)
        self._taking_up: set[asyncio.Task[None]] = set()
        self._surveys: dict[str, asyncio.Task[Survey]] = {}
        self._at_taking_up = asyncio.Semaphore(cluster.devices)
        self._metrics = LaneMetrics()

    async def target(self) -> Target:
        """Return the device that candidates are written for.

        Raises:
            ConfigError: the devices differ; one fleet times a problem on one kind of device.
        """
        if self._target is not None:
            return self._target
        targets: list[Target] = await self._devices.each("target")
        if not targets:
            raise WorkerLost("timing", "none of the device workers has come up")
        if len(set(targets)) > 1:
            names = ", ".join(sorted({target.name for target in targets}))
            raise ConfigError(f"the cluster's devices differ ({names}); join nodes of one kind")
        self._target = targets[0]
        await self._visit()
        return self._target

    async def _visit(self) -> None:
        """Hear from every device how it is; what is not to be trusted is lent no more."""
        said: list[DeviceFacts] = await self._devices.each("health", among="up")
        assert self._target is not None
        for facts in said:
            if not self._ward.meet(facts.worker, self._target, facts):
                self._devices.give_up(facts.worker)

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        """Build, verify and time one candidate (the Evaluator port).

        Of its seconds, those on the way to workers and back are `sent`: what passes here while they
        account for nothing.
        """
        asked_s = time.monotonic()
        self._take_up_ahead(problem)
        built, build_queued_s, prepared_s = await self._built(problem, candidate)
        queued_s = 0.0
        if built.verdict is None:
            evaluation, queued_s = await self._judged(problem, candidate, built)
        else:
            evaluation = unbuilt(
                built,
                built.verdict,
                problem,
                candidate,
                config=self._evaluate,
                target=await self.target(),
            )
        told = {"build_queued": build_queued_s, "queued": queued_s, **evaluation.timeline_s}
        if prepared_s:
            told["prepared"] = told.get("prepared", 0.0) + prepared_s
        told["sent"] = max(0.0, time.monotonic() - asked_s - sum(told.values()))
        evaluation = replace(evaluation, timeline_s=told)
        self._metrics.told(evaluation, lanes=self.lanes)
        return evaluation

    async def survey(self, problem: Problem) -> Survey:
        """Say what a problem is in numbers (the Surveyor port); of a run's problem once."""
        key = problem.problem_id
        if key not in self._surveys:
            self._surveys[key] = asyncio.create_task(self._surveyed(problem))
        try:
            return await asyncio.shield(self._surveys[key])
        except KoptError:
            self._surveys.pop(key, None)  # another time it may be had
            raise

    async def _surveyed(self, problem: Problem) -> Survey:
        async with AsyncExitStack() as stack:
            await self._quiet.hold_alone(stack)
            survey, _ = await self._devices.call("survey", problem, key=problem.problem_id)
        if problem.problem_id not in self._taken_up:
            self._taken_up.append(problem.problem_id)
        assert isinstance(survey, Survey)
        return survey

    async def _built(
        self, problem: Problem, candidate: Candidate
    ) -> tuple[BuildResult, float, float]:
        """Return what came of building it, and seconds: it waited, its problem was taken up.

        The second are those for which it waited for its problem once it was built.
        """
        if candidate.language not in BUILT_AHEAD:
            return nothing_to_build(candidate, cache_dir=self._cache_dir), 0.0, 0.0
        asked_s = time.monotonic()
        async with AsyncExitStack() as stack:
            await self._quiet.hold(stack)
            quiet_s = time.monotonic() - asked_s
            taking_up = asyncio.create_task(self._take_up(problem))
            try:
                built, queued_s = await self._build.call("build", problem, candidate)
                built_s, is_ready = time.monotonic(), taking_up.done()
            except asyncio.CancelledError:
                taking_up.cancel()
                raise
            finally:
                await asyncio.wait([taking_up])  # it must not go on while something is timed
        assert isinstance(built, BuildResult)
        prepared_s = 0.0 if is_ready else time.monotonic() - built_s
        return built, quiet_s + queued_s, prepared_s

    async def _take_up(self, problem: Problem) -> None:
        """Have a new problem made ready beside builds, where the device would shut them out.

        Its reference compiles on one core; with the cores to itself it left the others idle.
        """
        if not self._quiet.is_needed or problem.problem_id in self._taken_up:
            return
        self._taken_up.append(problem.problem_id)
        try:
            await self._devices.call("take_up", problem, key=problem.problem_id)
        except KoptError as error:
            _LOG.info("%s was not taken up ahead: %s", problem.name, error)  # its candidates say so

    def _take_up_ahead(self, problem: Problem) -> None:
        """Have a GPU make a new problem ready beside the candidates of others that it verifies."""
        if self._quiet.is_needed or problem.problem_id in self._taken_up:
            return
        self._taken_up.append(problem.problem_id)
        task = asyncio.get_running_loop().create_task(self._taken_up_ahead(problem))
        self._taking_up.add(task)
        task.add_done_callback(self._taking_up.discard)

    async def _taken_up_ahead(self, problem: Problem) -> None:
        async with self._at_taking_up:  # each device has one place for it
            try:
                await self._devices.beside("take_up", problem, key=problem.problem_id)
            except KoptError as error:
                _LOG.info("%s was not taken up ahead: %s", problem.name, error)

    async def _judged(
        self, problem: Problem, candidate: Candidate, built: BuildResult
    ) -> tuple[Evaluation, float]:
        """Return the evaluation, and the seconds that the candidate waited for a device."""
        asked_s = time.monotonic()
        async with AsyncExitStack() as stack:
            await self._quiet.hold_alone(stack)
            quiet_s = time.monotonic() - asked_s
            evaluation, queued_s = await self._devices.call(
                "evaluate", problem, candidate, built, key=problem.problem_id
            )
        assert isinstance(evaluation, Evaluation)
        self._num_judged += 1
        is_due = self._num_judged % (ANSWERS_PER_VISIT * self._devices.num_places) == 0
        if is_due and (self._visiting is None or self._visiting.done()):
            self._visiting = asyncio.create_task(self._visit())
        return evaluation, quiet_s + queued_s

    def grow(self, devices: int, *, here: int) -> None:
        """Have places for so many devices, if they were fewer: nodes have joined.

        They bring cores as well: builds go on beside their devices as beside the first ones.

        Args:
            devices: to use, in all.
            here: of those of the cluster that are there now.
        """
        self._devices.grow(devices)
        if self._builders_per_device is not None:
            self._build.grow(math.ceil(here * self._builders_per_device))

    def lanes(self) -> list[LaneLoad]:
        """Return how full the lanes are now."""
        return [self._build.load(), self._devices.load()]

    def close(self) -> None:
        """Let the idle actors go."""
        for task in (self._visiting, *self._taking_up, *self._surveys.values()):
            if task is not None:
                task.cancel()
        self._build.close()
        self._devices.close()
