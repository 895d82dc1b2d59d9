"""What is asked of a profiler, and what it answers: candidates, and their profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kopt.candidate import Candidate
from kopt.energy_protocol import EnergyFigures
from kopt.errors import ProfileFailed
from kopt.evaluation import Evaluation
from kopt.evidence import Evidence
from kopt.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A candidate that is to be profiled."""

    problem: Problem
    candidate: Candidate
    evaluation: Evaluation | None = None
    """With its timing; None where it was not judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What came of one."""

    evidence: Evidence | None
    """None where there is nothing at all; `failed` says why."""
    failed: str = ""
    remarks: tuple[str, ...] = ()
    """What was left out, and why."""
    disagreement: str = ""
    """How its output differs from the reference's, by its own word."""
    energy: EnergyFigures | None = None
    """Measured beside the reference's, where that was asked for."""
    took_s: Mapping[str, float] = field(default_factory=dict)
    """Stage to its seconds: `timeline`, within that `timeline.open` (its share of what was opened
    with others), `.load`, `.warm`, `.record`, `.close`; `ncu` (its share of a run with others),
    within that `ncu.load` and the like; `code`; `roofline`, of the first candidate of a problem;
    `energy`. Stages overlap: ncu starts beside timelines, code and roofline go on beside ncu."""


def evidence_of(profile: Profile) -> Evidence:
    """Return the evidence.

    Raises:
        ProfileFailed: there is none.
    """
    if profile.evidence is None:
        raise ProfileFailed(profile.failed)
    return profile.evidence
