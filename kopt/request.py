"""What a programmer is asked to write from: the problem, the way to here, how it is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kopt.candidate import Candidate
from kopt.evaluation import Evaluation, Track
from kopt.evidence import Evidence
from kopt.expansion import Expansion
from kopt.finding import Finding
from kopt.ladder import LadderName
from kopt.memory.history import History
from kopt.memory.recall import Memory
from kopt.problem import Problem
from kopt.profile_analysis import ProfileAnalysis
from kopt.survey import Survey
from kopt.target import Target
from kopt.tools.feedback import FeedbackMode

Orchestration = Literal["proactive", "reactive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A candidate that was judged, and what its profile came to."""

    candidate: Candidate
    evaluation: Evaluation
    findings: tuple[Finding, ...] = ()
    """Of speed, the first in rank first."""
    left_out: int = 0
    """Findings of speed beyond the most that are told."""
    remarks: tuple[Finding, ...] = ()
    """Whether there is headroom at all."""
    energy_notes: tuple[Finding, ...] = ()
    """Waste of energy that time does not show."""
    evidence: Evidence | None = None
    """None where it was not profiled, or nothing came of it."""
    analysis: ProfileAnalysis | None = None
    """What a model made of all that; None where none was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long the stages of judging may take, in seconds."""

    build_s: float
    """Compiling what the candidate's import compiles."""
    load_s: float
    """Importing it, constructing ModelNew, loading its weights."""
    call_s: float
    """One forward call on one input set, the first one included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What candidates are judged by, as far as their author has to know it."""

    ladder: LadderName = "strict"
    track: Track = "anything"
    deadlines: Deadlines | None = None
    """None where they are not known to whoever asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What an author is told of the parent's profile: an arm of the ablation."""

    feedback: FeedbackMode = "tools"
    max_findings: int | None = 4
    """None: all."""
    orchestration: Orchestration = "proactive"
    """`proactive`: findings stand in the prompt. `reactive`: a model calls the tools it wants."""
    energy: bool = False
    """Whether notes on energy are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """What a programmer is asked to write from."""

    problem: Problem
    target: Target
    search: str
    """Name of the search: `problem/arm/seed`, unique in the run."""
    arm: str
    seed: int
    """Of the search; the expansion has its own."""
    expansion: Expansion
    parent: Attempt | None
    """The node being debugged or optimised; None from ROOT."""
    survey: Survey | None = None
    """The problem in numbers; None where nobody has looked."""
    terms: Terms = Terms()
    telling: Telling = Telling()
    memory: Memory = field(default_factory=Memory)
    """What the author is reminded of, as it stood when the expansion was asked."""
    history: History = field(default_factory=History)
    """How the parent came about, and what was tried from it before."""
    manual: tuple[str, ...] = ()
    """What a library that candidates may use demands on the target: a head, and rules by their
    weight (`kopt.cutlass.constraint_text`). Of a programmer that has its source at hand."""
