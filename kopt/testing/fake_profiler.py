"""Fakes of the profile lane's ports: evidence and analyses at once, from a function."""

from __future__ import annotations

from collections.abc import Callable

from kopt.candidate import Candidate
from kopt.evaluation import Evaluation
from kopt.evidence import Energy, Evidence
from kopt.ports import AnalysisAnswer, AnalysisRequest, Completion, Message, Usage
from kopt.problem import Problem
from kopt.profile_analysis import ProfileAnalysis
from kopt.testing.planted_evidence import planted_evidence


def uncoalesced(problem: Problem, candidate: Candidate) -> Evidence:
    """Return evidence of a kernel whose loads are uncoalesced, whatever it is asked for."""
    del problem, candidate
    return planted_evidence()["uncoalesced"][0]


def with_energy_of(evidence: Evidence, *, picojoules: float) -> Evidence:
    """Return the evidence with that much energy, by both forms of the proxy."""
    return Evidence(
        device=evidence.device,
        arch=evidence.arch,
        level=evidence.level,
        kernels=evidence.kernels,
        roofline=evidence.roofline,
        energy=Energy(proxy_pj=picojoules, corrected_pj=picojoules),
    )


class InstantProfiler:
    """A Profiler that answers at once, from a function of problem and candidate."""

    def __init__(self, script: Callable[[Problem, Candidate], Evidence] = uncoalesced) -> None:
        """Take the function; what it raises, `profile` raises."""
        self._script = script
        self.calls: list[tuple[str, str]] = []
        """(problem id, candidate id) of every call, in order."""
        self.is_closed = False

    async def profile(
        self, problem: Problem, candidate: Candidate, evaluation: Evaluation
    ) -> Evidence:
        """Return the function's evidence (the Profiler port)."""
        del evaluation
        self.calls.append((problem.problem_id, candidate.candidate_id))
        return self._script(problem, candidate)

    async def close(self) -> None:
        """Remember that it was closed."""
        self.is_closed = True


ANALYSIS = ProfileAnalysis(
    bottleneck="memory",
    severity="high",
    steps=("Let neighbouring threads read neighbouring words.", "Load 16 bytes a thread."),
    summary="Each request of a warp reaches 32 sectors.",
)
"""What InstantAnalyst says."""


class InstantAnalyst:
    """An Analyst that says ANALYSIS at once: 50 tokens read, 5 written, 0.25 USD."""

    def __init__(self) -> None:
        """Start without requests."""
        self.requests: list[AnalysisRequest] = []

    async def analyse(self, request: AnalysisRequest) -> AnalysisAnswer:
        """Condense (the Analyst port)."""
        self.requests.append(request)
        return AnalysisAnswer(
            analysis=ANALYSIS,
            messages=(Message("user", "condense"),),
            sampling={"seed": request.seed},
            completion=Completion(
                text="memory", usage=Usage(tokens_in=50, tokens_out=5, cost_usd=0.25)
            ),
        )
