"""One search of the fleet, as the driver holds it: the tree, and what was tried so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kopt.agent_call import CallPlace
from kopt.candidate import Candidate, Language
from kopt.data.fold import ProfileState
from kopt.driver.order import RecordedOrder
from kopt.driver.recollection import Recollection
from kopt.driver.stops import Headway
from kopt.evaluation import Evaluation
from kopt.events import AgentCalled, CandidateMade, EvidenceTaken, SearchExtended, SearchStarted
from kopt.expansion import Expansion
from kopt.memory.tried import Tried
from kopt.ports import Attempt, EventSink
from kopt.problem import Problem
from kopt.search.base import Search
from kopt.verdict import Correct


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpec:
    """What tells one search of a fleet from another."""

    problem: Problem
    arm: str
    seed: int
    policy: str
    """Kind of the search (`mcts`)."""
    policy_config: dict[str, Any]
    """Plain form of everything its tree was made from."""

    @property
    def name(self) -> str:
        """Unique in the run: `problem/arm/seed`."""
        return f"{self.problem.name}/{self.arm}/{self.seed}"

    @property
    def budget(self) -> int | None:
        """Candidates that its tree may ask for; None where its config does not say."""
        search = self.policy_config.get("search", {})
        iterations, candidates = search.get("iterations"), search.get("candidates")
        return iterations * candidates if iterations and candidates else None

    def started(self) -> SearchStarted:
        """Return the event that opens this search."""
        return SearchStarted(
            problem=self.problem.problem_id,
            problem_name=self.problem.name,
            arm=self.arm,
            seed=self.seed,
            policy=self.policy,
            policy_config=self.policy_config,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """What the journal knows of an expansion that was in flight when an earlier driver died."""

    expansion: Expansion
    answer: str | None
    """Artefact of the answer; None where none had come."""
    num_completions: int = 0
    """Of the answer, as far as they are journalled."""
    made: frozenset[int]
    """Slots whose `candidate_made` is journalled."""
    verdicts: dict[int, Evaluation]
    """Slots whose verdict is journalled."""
    told: frozenset[int]
    """Slots the tree has heard of."""


@dataclass(slots=True, kw_only=True)
class SearchTask:
    """One search under way. Only the driver holds it."""

    spec: SearchSpec
    tree: Search
    started: bool = False
    """Whether `search_started` is journalled."""
    ended: bool = False
    extension: SearchExtended | None = None
    """Journalled before anything else: the tree goes on under another config."""
    stop_reason: str | None = None
    """Set when nothing more is asked; the search ends once nothing is pending."""
    failed: bool = False
    note: str = ""
    """What the programmer said last of why it wrote less than it was asked for."""
    setbacks: int = 0
    """Expansions cancelled in a row since nobody could write or judge."""
    empty: int = 0
    """Expansions in a row that were answered without a candidate."""
    in_flight: int = 0
    """Expansions under way."""
    awaiting: int = 0
    """Expansions left open in this sitting, since their answers are awaited."""
    unfinished: tuple[Unfinished, ...] = ()
    order: RecordedOrder | None = None
    """Of the recording that is played; it takes the place of the pace. None plays none."""
    made: dict[str, CandidateMade] = field(default_factory=dict)
    """Candidate id to how it was made first."""
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    """Candidate id to what became of it."""
    profiles: dict[str, ProfileState] = field(default_factory=dict)
    """Candidate id to its profile, as journalled."""
    calls: dict[CallPlace, AgentCalled] = field(default_factory=dict)
    """What its agents asked, as journalled (pipeline=agents)."""
    reference: EvidenceTaken | None = None
    """Of the problem's reference, where energy counts."""
    bests: dict[str, float] = field(default_factory=dict)
    """Candidate id to speed-up of each that was the fastest when it was told."""
    recollection: Recollection = field(default_factory=Recollection)
    """What it tried and learned, in the journal's order."""
    headway: Headway = field(default_factory=Headway)
    """How far it has come."""
    num_candidates: int = 1
    """Of the expansion that was asked last."""
    unlearned: tuple[tuple[Expansion, str], ...] = ()
    """Expansions that were over when an earlier driver died, with their answers' artefacts, whose
    lessons the journal does not have."""

    def may_ask_again(self) -> bool:
        """Whether another prompt may come of this search; one more than it seems is possible."""
        budget = self.spec.budget
        asked = self.tree.told() + self.tree.pending()
        return self.stop_reason is None and (budget is None or asked < budget)

    def remember(self, made: CandidateMade, evaluation: Evaluation) -> None:
        """Keep what a later expansion of this candidate will need; in the order told."""
        self.made.setdefault(made.candidate, made)
        self.recollection.told(made)
        self.evaluations[made.candidate] = evaluation
        verdict = evaluation.verdict
        self.headway.told(verdict)
        if isinstance(verdict, Correct):
            speedup = verdict.timing.speedup
            if speedup > max(self.bests.values(), default=0.0):
                self.bests[made.candidate] = speedup

    def forget(self) -> None:
        """Let go of what only expansions need; the journal has it all."""
        self.made.clear()
        self.evaluations.clear()
        self.profiles.clear()
        self.calls.clear()
        self.bests.clear()
        self.recollection = Recollection()

    def tried(self) -> Sequence[Tried]:
        """Return everything that was told, in order; see Recollection."""
        return self.recollection.tried(evaluations=self.evaluations, profiles=self.profiles)

    def attempt(self, candidate_id: str | None, sink: EventSink) -> Attempt | None:
        """Return a candidate with its evaluation; None for ROOT.

        Raises:
            StoreError: its source is no longer among the artefacts.
        """
        if candidate_id is None:
            return None
        made = self.made[candidate_id]
        candidate = Candidate(
            source=sink.get_text(made.source),
            language=_language(made.language),
            parent=made.parent,
            strategy=made.strategy,
            programmer=made.programmer,
        )
        return Attempt(candidate=candidate, evaluation=self.evaluations[candidate_id])


def _language(text: str) -> Language:
    # The journal holds what Candidate held; a foreign value would be caught at its evaluation.
    return text  # type: ignore[return-value]
