"""The device lane's worker: a supervisor as a plain class, wrapped as a Ray actor by its pool.

Light, for the drivers that name it: the supervisor is loaded where the worker starts.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kopt.actors.builder import BuildResult
from kopt.actors.config import EvaluateConfig
from kopt.actors.device_facts import device_facts
from kopt.actors.devices.base import DeviceName
from kopt.actors.metrics import DeviceMetrics
from kopt.actors.supervisor.supply import Supply
from kopt.candidate import Candidate
from kopt.device_health import DeviceFacts
from kopt.evaluation import Evaluation
from kopt.ports import Target
from kopt.problem import Problem
from kopt.survey import Survey

if TYPE_CHECKING:
    from kopt.actors.child.tensor_spec import Place


class DeviceWorker:
    """Owns one device. As an actor with threads it judges several candidates at a time."""

    def __init__(
        self,
        config: EvaluateConfig,
        device: DeviceName,
        number: int,
        cache_dir: str,
        supply: Supply | None = None,
    ) -> None:
        """Start.

        Args:
            config: how candidates are judged; its secret must be set.
            device: kind of device; which one is Ray's to say, by CUDA_VISIBLE_DEVICES.
            number: of this worker, for logs.
            cache_dir: kopt's cache on this node.
            supply: how many candidates at a time, and what is kept ready for them; None: one, and
                nothing.

        Raises:
            ConfigError: the device is not here.
        """
        from kopt.actors.supervisor.supervisor import Supervisor

        self.number = number
        self._device: DeviceName = device
        self._supervisor = Supervisor(
            config, device=device, cache_dir=Path(cache_dir), supply=supply
        )
        self._metrics = DeviceMetrics(number=number, device=device)

    def target(self) -> Target:
        """Return what the device is."""
        return self._supervisor.target

    def health(self) -> DeviceFacts:
        """Return which device it is, and what speaks against it."""
        return device_facts(self._device, number=self.number, name=self.target().name)

    @property
    def exchange(self) -> Place:
        """Where inputs and outputs lie that are exchanged with children."""
        return self._supervisor.exchange

    def evaluate(self, problem: Problem, candidate: Candidate, built: BuildResult) -> Evaluation:
        """Verify and time one candidate that was built.

        Raises:
            ProblemError: the reference breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        build_dir = None
        if built.build_dir is not None:
            build_dir = Path(built.build_dir)
            build_dir.mkdir(parents=True, exist_ok=True)
        evaluation = self._supervisor.evaluate(problem, candidate, build_dir=build_dir)
        self._metrics.judged(evaluation, busy_s=self._supervisor.busy_s())
        return replace(evaluation, timeline_s={"built": built.build_s, **evaluation.timeline_s})

    def take_up(self, problem: Problem) -> None:
        """Make a problem ready for its candidates; nothing is timed, so others may work beside it.

        Raises:
            ProblemError: the reference breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        self._supervisor.take_up(problem)

    def survey(self, problem: Problem) -> Survey:
        """Say what a problem is in numbers, and time its baselines.

        Raises:
            ProblemError: the reference breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        return self._supervisor.survey(problem)

    def settle(self) -> None:
        """Wait for what goes on beside evaluations: children that end, or are forked ahead."""
        self._supervisor.settle()

    def close(self) -> None:
        """End every process of this worker."""
        self._supervisor.close()
