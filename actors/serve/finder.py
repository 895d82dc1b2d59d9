"""What tools find of a right candidate: its profile, diagnosed."""

from __future__ import annotations

from typing import Any

from kopt.candidate import Candidate
from kopt.data.finding_json import findings_to_json
from kopt.evaluation import Evaluation
from kopt.ports import Profiler
from kopt.problem import Problem
from kopt.tools.diagnosis import diagnose


class Finder:
    """Profiles and diagnoses one candidate at a call."""

    def __init__(self, profiler: Profiler) -> None:
        """Take the profile lane."""
        self._profiler = profiler

    async def __call__(
        self, problem: Problem, candidate: Candidate, evaluation: Evaluation
    ) -> list[dict[str, Any]] | None:
        """Return findings (CONTRACTS.md, Finding), the first in rank first.

        Raises:
            ProfileFailed: no evidence can be had.
            WorkerLost: the process that profiled is gone.
        """
        evidence = await self._profiler.profile(problem, candidate, evaluation)
        return findings_to_json(diagnose(evidence).findings)
