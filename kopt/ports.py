"""Ports: what the driver needs from the outside, in the domain's own words.

The driver is the only caller. Adapters live in kopt.actors (Ray, torch, HTTP) and kopt.data
(files); fakes and conformance suites in kopt.testing. Everything passed through a port is a
frozen value that pickles; nothing here knows Ray, torch or Hydra. The values that programmers are
asked with and answer with have files of their own (`kopt.target`, `kopt.request`, `kopt.answer`)
and are named here too, so that who implements a port finds all of it in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from kopt.answer import Answer, Completion, Message, TokenTrace, Usage
from kopt.candidate import Candidate
from kopt.evaluation import Evaluation
from kopt.events import EventBody
from kopt.evidence import Evidence
from kopt.memory.entry import MemoryEntry
from kopt.memory.iteration import Iteration
from kopt.problem import Problem
from kopt.profile_analysis import ProfileAnalysis
from kopt.request import Attempt, Deadlines, Orchestration, Telling, Terms, WriteRequest
from kopt.survey import Survey
from kopt.target import Target

__all__ = [
    "AnalysisAnswer",
    "AnalysisRequest",
    "Analyst",
    "Answer",
    "Attempt",
    "Clock",
    "Completion",
    "Deadlines",
    "Evaluator",
    "EventSink",
    "ExtractionAnswer",
    "ExtractionRequest",
    "Extractor",
    "Message",
    "Orchestration",
    "Profiler",
    "Programmer",
    "Survey",
    "Surveyor",
    "Target",
    "Telling",
    "Terms",
    "TokenTrace",
    "Usage",
    "WriteRequest",
]


class Programmer(Protocol):
    """Whoever writes candidates."""

    name: str
    """Its kind (`openai`); candidates carry it."""

    async def write(self, request: WriteRequest) -> Answer:
        """Write up to `expansion.num_candidates` candidates.

        Equal requests give equal answers where the programmer is deterministic (rewriter,
        recorded). Many calls may be under way at once.

        Raises:
            ProgrammerUnavailable: it cannot write now; the expansion is cancelled.
            ProgrammerRefused: it never will as it is set up; the search ends.
            ProblemError: the problem itself cannot be read; its search ends.
            WorkerLost: the process that wrote is gone, also after the adapter's own retries.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and idle processes; nothing is under way any more."""
        ...


class Evaluator(Protocol):
    """Whoever judges candidates. The verdict is decided here, never by the candidate."""

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        """Build, verify and time one candidate.

        Whatever the candidate does is a verdict, never an exception. Many calls may be under
        way at once; they share devices, and nothing is timed beside another kernel.

        Raises:
            ProblemError: the reference itself breaks its contract or cannot run here.
            WorkerLost: the process that judged is gone, also after the adapter's own retries.
        """
        ...


class Surveyor(Protocol):
    """Whoever can say what a problem is in numbers. An evaluator can: it needs the same itself."""

    async def survey(self, problem: Problem) -> Survey:
        """Load a problem's reference and time it. Many calls may be under way at once.

        Raises:
            ProblemError: the reference itself breaks its contract or cannot run here.
            WorkerLost: the process that looked is gone, also after the adapter's own retries.
        """
        ...


class Profiler(Protocol):
    """Whoever measures why a correct candidate takes the time it takes."""

    async def profile(
        self, problem: Problem, candidate: Candidate, evaluation: Evaluation
    ) -> Evidence:
        """Profile one candidate, as deeply as the machine allows.

        What could not be had is missing from the evidence, never 0. Many calls may be under way
        at once; no candidate is timed beside one of them.

        Args:
            problem: of the candidate.
            candidate: that was found correct.
            evaluation: of it, with its timing.

        Raises:
            ProfileFailed: no evidence at all can be had of this candidate.
            WorkerLost: the process that profiled is gone, also after the adapter's own retries.
        """
        ...

    async def close(self) -> None:
        """Let go of idle processes; nothing is under way any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisRequest:
    """A profile that a model is to condense."""

    problem: Problem
    target: Target
    attempt: Attempt
    """With its evidence."""
    seed: int
    """For sampling."""
    telling: Telling = field(default_factory=Telling)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisAnswer:
    """What a model said of a profile."""

    analysis: ProfileAnalysis | None
    """None where the completion holds none; its fault says why."""
    messages: tuple[Message, ...]
    """The prompt as sent."""
    sampling: Mapping[str, Any]
    completion: Completion


@runtime_checkable
class Analyst(Protocol):
    """A model that condenses a profile (KernelPro's profiling agent)."""

    async def analyse(self, request: AnalysisRequest) -> AnalysisAnswer:
        """Condense one profile. Many calls may be under way at once.

        Raises:
            ProgrammerUnavailable: the model cannot be asked now.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionRequest:
    """An iteration that a model is to draw lessons from."""

    problem: Problem
    target: Target
    iteration: Iteration
    parent: Attempt | None
    """What was expanded, with the findings of its profile; None for ROOT."""
    written: tuple[Attempt, ...]
    """The iteration's candidates with their evaluations."""
    known: tuple[MemoryEntry, ...]
    """The memory so far."""
    seed: int
    """For sampling."""
    search: str = ""
    """Name of the search."""
    search_seed: int = 0
    """Of the search, as a recording knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionAnswer:
    """What a model drew from an iteration."""

    entries: tuple[MemoryEntry, ...] | None
    """None where the completion cannot be read; its fault says why. Empty: nothing to learn."""
    messages: tuple[Message, ...]
    """The prompt as sent."""
    sampling: Mapping[str, Any]
    completion: Completion


@runtime_checkable
class Extractor(Protocol):
    """A model that draws lessons from iterations, for a search's memory (KernelPro §3.4)."""

    async def extract(self, request: ExtractionRequest) -> ExtractionAnswer:
        """Draw lessons from one iteration; nobody waits for it. Many calls may be under way.

        Raises:
            ProgrammerUnavailable: the model cannot be asked now.
        """
        ...


class EventSink(Protocol):
    """Where facts go: append-only, in order, durable against the death of this process."""

    def append(self, search: str, body: EventBody) -> int:
        """Write one event and return its sequence number; it is on its way to disk on return.

        Raises:
            StoreError: it cannot be written (no space); nothing half-written is left.
        """
        ...

    def put_text(self, text: str) -> str:
        """Keep a text as an artefact and return its sha256; equal texts are kept once.

        Raises:
            StoreError: it cannot be written.
        """
        ...

    def get_text(self, sha256: str) -> str:
        """Return the text of an artefact that this run kept.

        Raises:
            StoreError: there is none of that name, or its bytes do not match it.
        """
        ...


class Clock(Protocol):
    """Time, passed in so that tests own it."""

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch, for records."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds that never run backwards, for budgets."""
        ...
