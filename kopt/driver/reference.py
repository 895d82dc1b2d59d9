"""A problem's reference as a candidate: what others are held against is profiled as they are."""

from __future__ import annotations

from dataclasses import replace

from kopt.candidate import Candidate
from kopt.evaluation import Evaluation
from kopt.problem import CANDIDATE_CLASS, REFERENCE_CLASS, Problem
from kopt.verdict import Correct


def reference_candidate(problem: Problem) -> Candidate:
    """Return a candidate that is the reference itself, run as it stands (`eager`)."""
    return Candidate(
        source=f"{problem.source.rstrip()}\n\n\nclass {CANDIDATE_CLASS}({REFERENCE_CLASS}):\n"
        '    """The reference."""\n',
        language="torch",
        programmer="reference",
    )


def reference_evaluation(evaluation: Evaluation, candidate: Candidate) -> Evaluation:
    """Return the reference's evaluation, as that of another candidate tells it.

    Args:
        evaluation: of a correct candidate.
        candidate: the reference as a candidate.
    """
    assert isinstance(evaluation.verdict, Correct)
    timing = evaluation.verdict.timing
    eager_us = timing.eager_us
    own = replace(
        timing,
        time_us=eager_us,
        time_ci_us=(eager_us, eager_us),
        speedup=timing.baseline_us / eager_us,
        speedup_ci=(timing.baseline_us / eager_us,) * 2,
    )
    return replace(
        evaluation,
        verdict=replace(evaluation.verdict, timing=own),
        candidate=candidate.candidate_id,
        language=candidate.language,
        timeline_s={},
    )
