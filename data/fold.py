"""The fold: a run's journal, event by event, to the state of each of its searches.

`resume` and `replay` build their trees from it, `results` and `best` their files. It is strict: a
journal in which a slot is told without a verdict, or twice, is damaged and not guessed at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from kopt.data.record import Record
from kopt.errors import StoreError
from kopt.evaluation import EvalJson
from kopt.events import (
    AgentCalled,
    AnswerReceived,
    CandidateMade,
    DeviceQuarantined,
    EvidenceTaken,
    ExpansionAsked,
    ExpansionCancelled,
    FindingsMade,
    MemoryUpdated,
    ProfileAnalysed,
    PromptSent,
    RunEnded,
    SearchEnded,
    SearchExtended,
    SearchStarted,
    Told,
    VerdictReached,
)

Operation = SearchExtended | ExpansionAsked | Told | ExpansionCancelled
"""What a tree went through."""


@dataclass(slots=True, kw_only=True)
class ExpansionState:
    """What the journal knows of one expansion. Slots are 0 … asked.n - 1."""

    asked: ExpansionAsked
    prompt: PromptSent | None = None
    answers: dict[int, AnswerReceived] = field(default_factory=dict)
    """Completion to answer."""
    calls: list[AgentCalled] = field(default_factory=list)
    """Of the roles that wrote it, in order; each place once."""
    candidates: dict[int, CandidateMade] = field(default_factory=dict)
    """Slot to candidate."""
    verdicts: dict[int, EvalJson] = field(default_factory=dict)
    """Slot to evaluation."""
    cached: set[int] = field(default_factory=set)
    """Slots whose verdict was known before: nothing was run for them."""
    told: dict[int, Told] = field(default_factory=dict)
    """Slot to what the tree made of it."""
    cancelled: ExpansionCancelled | None = None
    memory_known: int = 0
    """Updates of the search's memory that stood in the journal when it was asked."""

    @property
    def answered(self) -> AnswerReceived | None:
        """The first answer; None where none has come."""
        return next(iter(self.answers.values()), None)

    @property
    def is_open(self) -> bool:
        """Whether a slot is neither told nor cancelled."""
        return self.cancelled is None and len(self.told) < self.asked.n


@dataclass(slots=True, kw_only=True)
class ProfileState:
    """What the journal knows of one candidate's profile in one search."""

    evidence: EvidenceTaken
    findings: FindingsMade | None = None
    """None in arms without findings, and where there is no evidence."""
    analysis: ProfileAnalysed | None = None


@dataclass(slots=True, kw_only=True)
class SearchState:
    """What the journal knows of one search."""

    started: SearchStarted
    first_ns: int
    """Time of its first event, nanoseconds since the epoch."""
    last_ns: int
    """Time of its last event."""
    operations: list[Operation] = field(default_factory=list)
    """Everything that its tree went through, in order: applied to a new tree, it gives the same."""
    expansions: dict[int, ExpansionState] = field(default_factory=dict)
    """Ordinal to expansion, in the order asked."""
    profiles: dict[str, ProfileState] = field(default_factory=dict)
    """Candidate id to its profile, in the order taken."""
    reference: EvidenceTaken | None = None
    """Of the problem's reference, where energy counts."""
    memory: list[MemoryUpdated] = field(default_factory=list)
    """How its memory grew, in order: at most once for each expansion."""
    ended: SearchEnded | None = None
    """None while it runs; asking after an end (a budget was raised) opens it again."""

    def open_expansions(self) -> list[ExpansionState]:
        """Return those with a slot neither told nor cancelled, in the order asked."""
        return [expansion for expansion in self.expansions.values() if expansion.is_open]


@dataclass(slots=True, kw_only=True)
class RunState:
    """What the journal knows of a run."""

    searches: dict[str, SearchState] = field(default_factory=dict)
    """Name to search, in the order started."""
    next_seq: int = 0
    """Events so far."""
    ended: RunEnded | None = None
    """None unless the last event is the run's end."""
    quarantined: list[DeviceQuarantined] = field(default_factory=list)
    """Devices that were given up, in order; a later sitting may have used them again."""
    calls: list[AgentCalled] = field(default_factory=list)
    """Of roles, about compiled models as a whole, in order; each place of a model once."""


def fold(records: Iterable[Record]) -> RunState:
    """Return the state after all records of a run, in order.

    Raises:
        StoreError: the events contradict each other; the text names the first such event.
    """
    state = RunState()
    for record in records:
        apply(state, record)
    return state


def apply(state: RunState, record: Record) -> None:
    """Take one more record in.

    Raises:
        StoreError: it contradicts those before; the state is not to be used further.
    """
    if record.seq != state.next_seq:
        raise _contradiction(record, f"expected seq {state.next_seq}, found {record.seq}")
    state.next_seq += 1
    body = record.body
    state.ended = body if isinstance(body, RunEnded) else None
    if isinstance(body, RunEnded):
        return
    if isinstance(body, DeviceQuarantined):
        state.quarantined.append(body)
        return
    if isinstance(body, AgentCalled) and not record.search:
        place = body.problem, body.agent, body.turn
        if any((each.problem, each.agent, each.turn) == place for each in state.calls):
            raise _contradiction(record, f"{body.agent} was asked of this model before")
        state.calls.append(body)
        return
    if isinstance(body, SearchStarted):
        _start(state, record, body)
        return
    search = state.searches.get(record.search)
    if search is None:
        raise _contradiction(record, f"search {record.search!r} was not started")
    search.last_ns = record.time_ns
    if isinstance(body, SearchEnded):
        search.ended = body
    elif isinstance(body, SearchExtended):
        search.ended = None
        search.operations.append(body)
    elif isinstance(body, ExpansionAsked):
        if body.expansion in search.expansions:
            raise _contradiction(record, f"expansion {body.expansion} was asked before")
        search.ended = None
        search.expansions[body.expansion] = ExpansionState(
            asked=body, memory_known=len(search.memory)
        )
        search.operations.append(body)
    elif isinstance(body, MemoryUpdated):
        why = _apply_to_memory(search, body)
        if why is not None:
            raise _contradiction(record, why)
    else:
        expansion = search.expansions.get(body.expansion)
        if expansion is None:
            raise _contradiction(record, f"expansion {body.expansion} was not asked")
        if isinstance(body, EvidenceTaken | FindingsMade | ProfileAnalysed):
            why = _apply_to_profile(search, expansion, body)
        else:
            why = _apply_to_expansion(expansion, body)
        if why is not None:
            raise _contradiction(record, f"expansion {body.expansion}: {why}")
        if isinstance(body, Told | ExpansionCancelled):
            search.operations.append(body)


def verdict_cache(state: RunState) -> dict[tuple[str, str], EvalJson]:
    """Return the first evaluation of each (problem id, candidate id), over all searches."""
    known: dict[tuple[str, str], EvalJson] = {}
    for search in state.searches.values():
        for expansion in search.expansions.values():
            for index, evaluation in expansion.verdicts.items():
                key = search.started.problem, expansion.candidates[index].candidate
                known.setdefault(key, evaluation)
    return known


def evidence_cache(state: RunState) -> dict[tuple[str, str], EvidenceTaken]:
    """Return how each (problem id, candidate id) was profiled first, over all searches."""
    known: dict[tuple[str, str], EvidenceTaken] = {}
    for search in state.searches.values():
        for candidate, profile in search.profiles.items():
            known.setdefault((search.started.problem, candidate), profile.evidence)
        if search.reference is not None:
            key = search.started.problem, search.reference.candidate
            known.setdefault(key, search.reference)
    return known


def _start(state: RunState, record: Record, body: SearchStarted) -> None:
    if record.search in state.searches:
        raise _contradiction(record, f"search {record.search!r} was started before")
    state.searches[record.search] = SearchState(
        started=body, first_ns=record.time_ns, last_ns=record.time_ns
    )


def _apply_to_expansion(
    expansion: ExpansionState,
    body: PromptSent
    | AnswerReceived
    | AgentCalled
    | CandidateMade
    | VerdictReached
    | Told
    | ExpansionCancelled,
) -> str | None:
    """Take an event in; return what it contradicts, or None."""
    match body:
        case PromptSent():
            expansion.prompt = body
        case AnswerReceived():
            if body.index in expansion.answers:
                return f"answer {body.index} was received before"
            expansion.answers[body.index] = body
        case AgentCalled():
            place = body.agent, body.slot, body.turn
            if any((each.agent, each.slot, each.turn) == place for each in expansion.calls):
                return f"{body.agent} was asked for idea {body.slot}, turn {body.turn} before"
            expansion.calls.append(body)
        case CandidateMade():
            if not 0 <= body.index < expansion.asked.n:
                return f"slot {body.index} is not one of {expansion.asked.n}"
            if body.index in expansion.candidates:
                return f"slot {body.index} was filled before"
            expansion.candidates[body.index] = body
        case VerdictReached():
            made = expansion.candidates.get(body.index)
            if made is None:
                return f"a verdict on slot {body.index}, which has no candidate"
            if made.candidate != body.candidate:
                return f"a verdict on another candidate than slot {body.index} holds"
            if body.index in expansion.verdicts:
                return f"slot {body.index} had a verdict before"
            expansion.verdicts[body.index] = body.eval
            if body.cached:
                expansion.cached.add(body.index)
        case Told():
            if body.index not in expansion.verdicts:
                return f"slot {body.index} was told without a verdict"
            if body.index in expansion.told:
                return f"slot {body.index} was told before"
            if expansion.cancelled is not None:
                return f"slot {body.index} was told after it was cancelled"
            expansion.told[body.index] = body
        case ExpansionCancelled():
            if expansion.cancelled is not None:
                return "it was cancelled before"
            expansion.cancelled = body
        case _:
            assert_never(body)
    return None


def _apply_to_profile(
    search: SearchState,
    expansion: ExpansionState,
    body: EvidenceTaken | FindingsMade | ProfileAnalysed,
) -> str | None:
    """Take an event in; return what it contradicts, or None."""
    if isinstance(body, EvidenceTaken) and body.is_reference:
        if search.reference is not None:
            return "the reference was profiled before"
        search.reference = body
        return None
    made = expansion.candidates.get(body.index)
    if made is None or made.candidate != body.candidate:
        return f"a profile of another candidate than slot {body.index} holds"
    known = search.profiles.get(body.candidate)
    if isinstance(body, EvidenceTaken):
        if known is not None:
            return f"candidate {body.candidate:.12} was profiled before"
        search.profiles[body.candidate] = ProfileState(evidence=body)
        return None
    if known is None or known.evidence.ref is None:
        return f"candidate {body.candidate:.12} has no evidence"
    if isinstance(body, FindingsMade):
        if known.findings is not None:
            return f"candidate {body.candidate:.12} had findings before"
        known.findings = body
        return None
    if known.analysis is not None:
        return f"the profile of candidate {body.candidate:.12} was analysed before"
    known.analysis = body
    return None


def _apply_to_memory(search: SearchState, body: MemoryUpdated) -> str | None:
    """Take an event in; return what it contradicts, or None."""
    place = "its beginning" if body.expansion is None else f"expansion {body.expansion}"
    if body.expansion is not None and body.expansion not in search.expansions:
        return f"{place} was not asked"
    # A search may begin with what several earlier ones left: one update of each origin.
    origin = body.origin if body.expansion is None else None
    if any(
        each.expansion == body.expansion and origin in (None, each.origin) for each in search.memory
    ):
        return f"{place} was remembered before"
    search.memory.append(body)
    return None


def _contradiction(record: Record, why: str) -> StoreError:
    where = f"{record.search} " if record.search else ""
    return StoreError(
        f"journal of {record.run}", f"seq {record.seq}: {where}{record.body.kind}: {why}"
    )
