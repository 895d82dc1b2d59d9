"""The conformance suite of Profiler: what every profile lane keeps, however it measures.

Subclass it in a test file and fill in the members; pytest collects the rest:

    class TestMine(ProfilerSuite):
        def make_profiler(self):
            return MyProfiler()

        def profiled(self):
            return problem, candidate, evaluation
"""

# ruff: noqa: D102 - the name of a test is its sentence
from __future__ import annotations

import asyncio
import json
import math
from abc import ABC, abstractmethod
from dataclasses import replace

from kopt.candidate import Candidate
from kopt.data.evidence_json import evidence_from_json, evidence_to_json
from kopt.errors import ProfileFailed, WorkerLost
from kopt.evaluation import Evaluation
from kopt.evidence import Evidence
from kopt.ports import Profiler
from kopt.problem import Problem
from kopt.tools.diagnosis import diagnose

LIMIT_S = 300.0
"""Within which every profile ends, one way or the other."""


class ProfilerSuite(ABC):
    """Subclass this, fill in the members, and name the subclass Test…."""

    @abstractmethod
    def make_profiler(self) -> Profiler:
        """Return a new profiler."""

    @abstractmethod
    def profiled(self) -> tuple[Problem, Candidate, Evaluation]:
        """Return a correct candidate of a problem, with its evaluation."""

    def test_a_correct_candidate_has_evidence_that_a_journal_can_keep(self) -> None:
        (evidence,) = self._profile(self.profiled()[1])
        assert isinstance(evidence, Evidence)
        assert evidence.device
        assert evidence.arch
        kept = json.loads(json.dumps(evidence_to_json(evidence), allow_nan=False))
        assert evidence_from_json(kept) == evidence

    def test_what_the_tools_are_given_they_can_read(self) -> None:
        (evidence,) = self._profile(self.profiled()[1])
        assert isinstance(evidence, Evidence)
        diagnosis = diagnose(evidence, max_findings=None)
        assert not [silent for silent in diagnosis.silent if silent.fault]
        shares = [kernel.share for kernel in evidence.kernels if kernel.share is not None]
        assert all(0.0 <= share <= 1.0 for share in shares)
        times = [kernel.time_us for kernel in evidence.kernels if kernel.time_us is not None]
        assert all(math.isfinite(time_us) and time_us >= 0.0 for time_us in times)

    def test_several_at_once_each_have_their_own(self) -> None:
        candidate = self.profiled()[1]
        outcomes = self._profile(candidate, candidate)
        assert all(isinstance(outcome, Evidence) for outcome in outcomes)

    def test_one_that_does_not_run_fails_in_one_line_or_has_evidence_all_the_same(self) -> None:
        broken = replace(self.profiled()[1], source="raise SystemExit(3)\n")
        (outcome,) = self._profile(broken)
        if not isinstance(outcome, Evidence):
            assert isinstance(outcome, ProfileFailed | WorkerLost), outcome
            assert str(outcome)
            assert "\n" not in str(outcome)

    def _profile(self, *candidates: Candidate) -> list[Evidence | BaseException]:
        problem, _, evaluation = self.profiled()

        async def run() -> list[Evidence | BaseException]:
            profiler = self.make_profiler()
            try:
                asked = [profiler.profile(problem, each, evaluation) for each in candidates]
                async with asyncio.timeout(LIMIT_S):
                    return await asyncio.gather(*asked, return_exceptions=True)
            finally:
                await profiler.close()

        return asyncio.run(run())
