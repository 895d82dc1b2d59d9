"""The Profiler port on Ray: the profile lane, one worker a device.

Candidates that wait together are profiled together: they share one run of ncu, whose start costs
more than a candidate does. A worker holds its device's lock meanwhile; on a CPU nothing is timed
beside it, by the `Quiet` that all lanes share.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray

from kopt.actors.cluster import Cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.evidence.device_lock import device_lock
from kopt.actors.evidence.subjects import Profile, Subject, evidence_of
from kopt.actors.lanes import ActorLane
from kopt.actors.pool import HUNG_S
from kopt.actors.quiet import Quiet
from kopt.candidate import Candidate
from kopt.errors import KoptError, ProfileFailed
from kopt.evaluation import Evaluation
from kopt.evidence import Evidence
from kopt.problem import Problem

if TYPE_CHECKING:
    from kopt.actors.evidence.profiler import DeviceProfiler

MAX_TOGETHER = 4
"""Candidates of one run: more would keep the first of them waiting."""


class ProfileWorker:
    """The profile lane's worker: a profiler as a plain class, started with its first work."""

    def __init__(
        self,
        config: EvaluateConfig,
        device: DeviceName,
        number: int,
        cache_dir: str,
        *,
        with_rules: bool = False,
    ) -> None:
        """Start nothing yet.

        Args:
            config: how candidates are judged.
            device: kind of device.
            number: of this worker: the profile lane is lent no GPU by Ray (timing has it), so that
                workers share out the node's GPUs by number.
            cache_dir: kopt's cache on this node.
            with_rules: NVIDIA's rules are wanted too.
        """
        if device == "cuda":
            os.environ["CUDA_VISIBLE_DEVICES"] = _gpu_of(number)
        self._config = config
        self._device = device
        self._cache_dir = cache_dir
        self._with_rules = with_rules
        self._profiler: DeviceProfiler | None = None

    def profile(self, subjects: list[Subject]) -> list[Profile]:
        """Profile candidates, holding the device.

        Raises:
            WorkerLost: the zygote is gone.
        """
        if self._profiler is None:
            from kopt.actors.evidence.profiler import DeviceProfiler

            self._profiler = DeviceProfiler(
                self._config,
                self._device,
                self._cache_dir,
                ready_for=None if self._with_rules else "ncu",
            )
        with device_lock(Path(self._cache_dir), device=self._device):
            return self._profiler.profile(subjects, with_rules=self._with_rules)


@dataclass(slots=True)
class _Request:
    subject: Subject
    answer: asyncio.Future[Profile] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class RayProfiler:
    """Profiles candidates on the cluster's devices."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        config: ClusterConfig,
        evaluate: EvaluateConfig,
        cache_dir: Path,
        quiet: Quiet,
        with_rules: bool = False,
        worker: type[Any] = ProfileWorker,
    ) -> None:
        """Make the lane; its actors start when they are needed.

        Args:
            cluster: that is up.
            config: the cluster's section, for retries.
            evaluate: how candidates are judged: profiles run under the same flags.
            cache_dir: of builds and capabilities, on each node.
            quiet: shared with the evaluator.
            with_rules: NVIDIA's rules too (feedback `rules`), which costs more passes.
            worker: class of the workers; tests put their own.
        """
        self._quiet = quiet

        def start(number: int) -> Any:  # noqa: ANN401 - Ray types no handle
            remote = ray.remote(worker).options(**cluster.options("profile"))
            return remote.remote(
                evaluate, cluster.device, number, str(cache_dir), with_rules=with_rules
            )

        self._lane = ActorLane(
            "profile",
            start,
            size=cluster.devices,
            max_retries=config.max_retries,
            limit_s=HUNG_S,
            started=0,  # a search may never ask for a profile
        )
        self._free = asyncio.Semaphore(cluster.devices)
        self._waiting: list[_Request] = []
        self._serving: set[asyncio.Task[None]] = set()

    async def profile(
        self, problem: Problem, candidate: Candidate, evaluation: Evaluation
    ) -> Evidence:
        """Profile one candidate (the Profiler port)."""
        request = _Request(Subject(problem=problem, candidate=candidate, evaluation=evaluation))
        self._waiting.append(request)
        serving = asyncio.create_task(self._serve())
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        try:
            return evidence_of(await request.answer)
        finally:
            if request in self._waiting:  # given up before anybody took it
                self._waiting.remove(request)

    async def _serve(self) -> None:
        """Take what waits for a worker, and answer it: each call starts one of these."""
        async with self._free, AsyncExitStack() as stack:
            await self._quiet.hold_alone(stack)
            batch = self._waiting[:MAX_TOGETHER]
            del self._waiting[:MAX_TOGETHER]
            if not batch:
                return  # somebody took our request along
            key = batch[0].subject.problem.problem_id
            try:
                profiles, _ = await self._lane.call(
                    "profile", [each.subject for each in batch], key=key
                )
            except KoptError as error:
                _answer_all(batch, error)
            except BaseException:
                _answer_all(batch, ProfileFailed("the profile was cancelled"))
                raise
            else:
                for request, profile in zip(batch, profiles, strict=True):
                    if not request.answer.done():
                        request.answer.set_result(profile)

    async def close(self) -> None:
        """Let the idle actors go."""
        self._lane.close()


def _gpu_of(number: int) -> str:
    """Return the GPU of a worker, as CUDA_VISIBLE_DEVICES names it."""
    stated = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    visible = [name.strip() for name in stated.split(",") if name.strip()]
    if not visible:
        import torch

        visible = [str(index) for index in range(max(1, torch.cuda.device_count()))]
    return visible[number % len(visible)]


def _answer_all(batch: list[_Request], error: KoptError) -> None:
    for request in batch:
        if not request.answer.done():
            request.answer.set_exception(error)
