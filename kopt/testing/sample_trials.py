"""Trials for tests of statistics, with as few fields as a test cares about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kopt.analysis.trial import Lead, Terms, Trial
from kopt.data.results import OPTIMIZED_SPEEDUP

SAMPLE_TERMS = Terms(
    ladder="strict",
    device="cpu (a CPU)",
    baseline="eager",
    protocol="abba",
    module_mode="train",
    track="anything",
)


def sample_trial(
    problem: str,
    speedup: float | None,
    *,
    arm: str = "arm",
    seed: int = 0,
    **changes: Any,  # noqa: ANN401
) -> Trial:
    """Return an ended search with one candidate: correct, or incorrect where speedup is None.

    Args:
        problem: its name; its id follows from it.
        speedup: of the candidate.
        arm: of the search.
        seed: of the search.
        changes: other fields of the trial.
    """
    outcome = "matched" if speedup is None or speedup <= OPTIMIZED_SPEEDUP else "optimized"
    plain = Trial(
        run="run",
        search=f"{problem}/{arm}/{seed}",
        problem=f"id of {problem}",
        problem_name=problem,
        arm=arm,
        seed=seed,
        terms=SAMPLE_TERMS,
        speedup=speedup,
        leads=() if speedup is None else (Lead(1, speedup),),
        peak=speedup,
        verdicts={"incorrect" if speedup is None else "correct": 1},
        outcome="unsolved" if speedup is None else outcome,
    )
    return replace(plain, **changes)
