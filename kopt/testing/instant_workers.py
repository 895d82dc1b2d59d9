"""Workers that judge at once, in place of the lanes' own: everything but the work is real."""

from __future__ import annotations

import os
import platform

from kopt.actors.builder import BuildResult
from kopt.actors.config import EvaluateConfig
from kopt.candidate import Candidate
from kopt.device_health import DeviceFacts
from kopt.evaluation import Evaluation
from kopt.ports import Target
from kopt.problem import Problem
from kopt.survey import Survey
from kopt.testing.fakes import evaluation_of, hashed_verdict


class InstantBuilder:
    """A Builder that builds nothing."""

    def __init__(self, config: EvaluateConfig, device: str, cache_dir: str) -> None:
        """Take what a Builder takes."""
        del config, device, cache_dir

    def build(self, problem: Problem, candidate: Candidate) -> BuildResult:
        """Say that there was nothing to build."""
        del problem, candidate
        return BuildResult()


class InstantWorker:
    """A DeviceWorker whose verdict is a function of the problem's and the candidate's ids."""

    def __init__(
        self,
        config: EvaluateConfig,
        device: str,
        number: int,
        cache_dir: str,
        supply: object = None,
    ) -> None:
        """Take what a DeviceWorker takes."""
        del config, cache_dir, supply
        self._device = device
        self.number = number

    def target(self) -> Target:
        """Return a device that takes anything."""
        return Target(device=self._device, name="instant", arch="none", languages=("torch",))

    def health(self) -> DeviceFacts:
        """Return a device that nothing speaks against: one for each process."""
        host = platform.node()
        return DeviceFacts(
            device=f"{host}/{os.getpid()}", host=host, name="instant", worker=self.number
        )

    def take_up(self, problem: Problem) -> None:
        """Do nothing: there is nothing to make ready."""
        del problem

    def survey(self, problem: Problem) -> Survey:
        """Return a survey that nothing is known from."""
        del problem
        return Survey()

    def evaluate(self, problem: Problem, candidate: Candidate, built: BuildResult) -> Evaluation:
        """Judge."""
        del built
        verdict = hashed_verdict(problem, candidate)
        return evaluation_of(verdict, problem=problem, candidate=candidate, device=self._device)
