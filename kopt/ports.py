"""Ports: what the driver needs from the outside, in the domain's own words.

The driver is the only caller. Adapters live in kopt.actors (Ray, torch, HTTP) and kopt.data
(files); fakes and conformance suites in kopt.testing. Everything passed through a port is a
frozen value that pickles; nothing here knows Ray, torch or Hydra.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from kopt.api import Api
from kopt.candidate import Candidate, Language
from kopt.evaluation import Evaluation, Track
from kopt.events import EventBody
from kopt.evidence import Evidence
from kopt.expansion import Expansion
from kopt.finding import Finding
from kopt.ladder import LadderName
from kopt.memory.entry import MemoryEntry
from kopt.memory.history import History
from kopt.memory.iteration import Iteration
from kopt.memory.recall import Memory
from kopt.problem import Problem
from kopt.profile_analysis import ProfileAnalysis
from kopt.tools.feedback import FeedbackMode

Orchestration = Literal["proactive", "reactive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The device that candidates are written for."""

    device: str
    """`cpu` or `cuda`."""
    name: str
    """The GPU's name, or the CPU's model."""
    arch: str
    """`sm_90`, or the CPU's machine name (`x86_64`)."""
    languages: tuple[Language, ...]
    """What can be built and run there."""
    apis: tuple[Api, ...] = ()
    """What the languages' packages offer, for authors to be told; says nothing of the device."""

    @property
    def label(self) -> str:
        """What evaluations name: `cpu`, or the GPU's name."""
        return self.device if self.device == "cpu" else self.name


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
class Terms:
    """What candidates are judged by, as far as their author has to know it."""

    ladder: LadderName = "strict"
    track: Track = "anything"


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
    terms: Terms = Terms()
    telling: Telling = Telling()
    memory: Memory = field(default_factory=Memory)
    """What the author is reminded of, as it stood when the expansion was asked."""
    history: History = field(default_factory=History)
    """How the parent came about, and what was tried from it before."""
    manual: tuple[str, ...] = ()
    """What a library that candidates may use demands on the target: a head, and rules by their
    weight (`kopt.cutlass.constraint_text`). Of a programmer that has its source at hand."""


class Message(NamedTuple):
    """One message of a prompt."""

    role: str
    """`system`, `user` or `assistant`."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an answer cost."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTrace:
    """A completion token by token, for learning from it."""

    prompt_token_ids: tuple[int, ...] = ()
    """Of the prompt as the model read it; empty where the server does not give them."""
    token_ids: tuple[int, ...] = ()
    """Of the completion, the one that ended it included; empty likewise."""
    logprobs: tuple[float | None, ...] = ()
    """Of each token of the completion; None for one without a finite one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One answer of a model or a person, as it came. Untrusted text."""

    text: str
    finish: str = ""
    """Why it ended, in the server's word: `stop`, `length`, `content_filter`, …; empty where
    nobody said."""
    fault: str = ""
    """Why it holds no candidate, in one line; empty where it holds one."""
    usage: Usage = Usage()
    """Tokens of a prompt that several completions share are counted with the first."""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    """Tools that were called on the way, in order: `name`, `arguments`, `result`, as text."""
    reasoning: str = ""
    """What the model thought beside its words, where the server gives it apart from them."""
    trace: TokenTrace | None = None
    """Of the last turn where tools were called; None where it was not asked for or not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a programmer wrote: at most N candidates, in the order of their slots."""

    candidates: tuple[Candidate, ...]
    exhausted: bool = False
    """It has nothing more for this node, ever: the search closes the node."""
    messages: tuple[Message, ...] = ()
    """The prompt as sent; empty where nobody was asked in words."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Model, temperature, seed, …: plain JSON values, as sent."""
    completions: tuple[Completion, ...] = ()
    """What came back, those without a candidate included; empty where nobody was asked."""
    note: str = ""
    """One line for the journal, such as why there are fewer than N."""


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
    telling: Telling = Telling()


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
