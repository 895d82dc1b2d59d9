"""Every Profiler keeps its port's contract."""

from __future__ import annotations

from kopt.candidate import Candidate
from kopt.errors import ProfileFailed
from kopt.evaluation import Evaluation
from kopt.evidence import Evidence
from kopt.ports import Profiler
from kopt.problem import Problem
from kopt.testing.fake_profiler import InstantProfiler, uncoalesced
from kopt.testing.fakes import correct, evaluation_of, source_candidate
from kopt.testing.profiler_suite import ProfilerSuite
from kopt.testing.small_fleet import small_problem


def _only_what_runs(problem: Problem, candidate: Candidate) -> Evidence:
    if "ModelNew" not in candidate.source:
        raise ProfileFailed("the candidate ended with status 3")
    return uncoalesced(problem, candidate)


class TestInstantProfiler(ProfilerSuite):
    def make_profiler(self) -> Profiler:
        return InstantProfiler(_only_what_runs)

    def profiled(self) -> tuple[Problem, Candidate, Evaluation]:
        problem, candidate = small_problem(), source_candidate("class ModelNew: ...\n")
        return problem, candidate, evaluation_of(correct(2.0), problem=problem, candidate=candidate)
