"""Events: the typed facts of a run. The journal is their sequence; the tree is a fold over it.

The envelope (`schema`, `seq`, `time_ns`, `run`, `search`, `kind`) is the sink's to add. Long
texts (sources, prompts, answers) are artefacts, referred to by their sha256.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar

from kopt.evaluation import EvalJson
from kopt.expansion import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStarted:
    """A search began: everything needed to build its tree again."""

    kind: ClassVar[str] = "search_started"
    problem: str
    problem_name: str
    arm: str
    seed: int
    policy: str
    policy_config: dict[str, Any]
    """The search's section of the resolved config, its reward rule included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchExtended:
    """A search goes on with another budget: its tree is restored under this config."""

    kind: ClassVar[str] = "search_extended"
    policy_config: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionAsked:
    """The tree asked for candidates."""

    kind: ClassVar[str] = "expansion_asked"
    expansion: int
    parent_node: int
    parent: str | None
    mode: Mode
    n: int
    first_child: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSent:
    """A model was asked."""

    kind: ClassVar[str] = "prompt_sent"
    expansion: int
    messages: str
    """Artefact: JSON list of [role, text]."""
    sampling: dict[str, Any]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReceived:
    """A programmer answered. Written before the answer is used: it may have cost money."""

    kind: ClassVar[str] = "answer_received"
    expansion: int
    index: int
    """Which completion of the expansion, from 0; a programmer that is no model has one."""
    candidates: int
    """How many slots the whole answer fills; the rest are cancelled."""
    answer: str
    """Artefact: the whole answer as JSON (kopt.data.answers), so that a resumed run needs no
    second call."""
    text: str | None
    """Artefact: the completion's own words; None where no model was asked."""
    finish: str = ""
    """Why the completion ended, in the server's word; empty where nobody said."""
    fault: str = ""
    """Why the completion holds no candidate; empty where it holds one."""
    tool_calls: list[dict[str, Any]]
    tokens_in: int
    tokens_out: int
    cost_usd: float
    exhausted: bool
    note: str
    trace: str | None = None
    """Artefact: JSON of `prompt_token_ids`, `token_ids` and `logprobs`; None where not kept."""
    reasoning: str | None = None
    """Artefact: what the model thought, served apart from its words; None where nothing was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCalled:
    """One role of several asked a model (pipeline=agents). Written before its answer is used.

    Its tokens and cost are counted with the answer of its expansion; those of a strategist, whose
    call is of no search, by themselves.
    """

    kind: ClassVar[str] = "agent_call"
    expansion: int
    agent: str
    """`planner`, `executor`, `codegen`, `fusion`, `strategist`."""
    slot: int
    """Idea of the expansion that it is for, from 0."""
    turn: int
    """Of the role's conversation there, from 0."""
    messages: str
    """Artefact: JSON list of [role, text], the whole conversation up to this call."""
    sampling: dict[str, Any]
    text: str | None
    """Artefact: the completion's own words."""
    finish: str = ""
    """Why it ended, in the server's word."""
    fault: str = ""
    """Why there are no words, in one line."""
    reasoning: str | None = None
    """Artefact: what the model thought, served apart from its words."""
    tokens_in: int
    tokens_out: int
    cost_usd: float
    problem: str = ""
    """Id of the compiled model that it is about, where it is of no search; else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateMade:
    """One slot of an expansion was filled."""

    kind: ClassVar[str] = "candidate_made"
    candidate: str
    expansion: int
    index: int
    source: str
    """Artefact."""
    language: str
    parent: str | None
    strategy: str
    programmer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReached:
    """A candidate was judged."""

    kind: ClassVar[str] = "verdict"
    candidate: str
    expansion: int
    index: int
    cached: bool
    """The same text was judged before on this problem, in this run or an earlier one; nothing was
    run."""
    eval: EvalJson


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTaken:
    """A candidate was profiled, or it was tried."""

    kind: ClassVar[str] = "evidence"
    candidate: str
    expansion: int
    index: int
    """Expansion and slot that first held the candidate."""
    ref: str | None
    """Artefact: the evidence as JSON; None where none could be had."""
    level: str | None
    """`ncu`, `timeline` or `static`; None without evidence."""
    reason: str
    """Why there is none, in one line; empty where there is."""
    cached: bool
    """It was profiled for another search of the run; nothing was run."""
    profiled_s: float
    """Seconds of the device, waiting for it included; 0 where nothing was run."""
    is_reference: bool = False
    """It is the problem's reference, written as a candidate, whose energy others are held against;
    expansion and slot are those that asked for it first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsMade:
    """What the tools concluded from a candidate's evidence (feedback `tools`)."""

    kind: ClassVar[str] = "findings"
    candidate: str
    expansion: int
    index: int
    findings: list[dict[str, Any]]
    """Of speed (CONTRACTS.md, Finding), the first in rank first."""
    left_out: int
    """Findings of speed beyond `findings.max`."""
    remarks: list[dict[str, Any]]
    """Whether there is headroom at all."""
    energy_notes: list[dict[str, Any]]
    silent: list[str]
    """Tools whose figures the evidence lacks, and those that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileAnalysed:
    """A model condensed a candidate's profile. Written before it is used, as answers are."""

    kind: ClassVar[str] = "profile_analysis"
    candidate: str
    expansion: int
    index: int
    messages: str
    """Artefact: JSON list of [role, text]."""
    sampling: dict[str, Any]
    text: str | None
    """Artefact: the completion's own words."""
    analysis: dict[str, Any] | None
    """Bottleneck, severity, steps, summary; None where the words hold none."""
    fault: str
    """Why they hold none, in one line."""
    tokens_in: int
    tokens_out: int
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdated:
    """A search's memory grew.

    An expansion's prompt was told what stands in the journal before that expansion was asked.
    """

    kind: ClassVar[str] = "memory_updated"
    expansion: int | None
    """That it was learned from; None for what the search began with."""
    origin: str
    """`rules` (of verdicts, by rule), `model`, or of earlier runs `tracker` and `retrieval`."""
    entries: list[dict[str, Any]]
    """Of the search memory: `heading`, `text`. Of the tracker: its records. Of
    retrieval: the precedent, or nothing where there was none."""
    messages: str | None = None
    """Artefact: JSON list of [role, text]; None where no model was asked."""
    sampling: dict[str, Any] | None = None
    text: str | None = None
    """Artefact: the completion's own words."""
    fault: str = ""
    """Why a model's words hold no entries (those are by rule then), in one line."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The tree heard of a verdict."""

    kind: ClassVar[str] = "told"
    expansion: int
    index: int
    node: int
    reward: float
    energy_reduction: float | None = None
    """Reference's energy ÷ candidate's, where it is part of the reward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionCancelled:
    """The slots not yet told were given up; with `exhausted`, the node is closed."""

    kind: ClassVar[str] = "expansion_cancelled"
    expansion: int
    exhausted: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEnded:
    """A search is over."""

    kind: ClassVar[str] = "search_ended"
    reason: str
    """`budget`, `exhausted`, `all_terminal`, `failed: …`, …."""
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceQuarantined:
    """A device is lent no more in this sitting: it is not to be trusted. Of no search."""

    kind: ClassVar[str] = "device_quarantined"
    device: str
    """The GPU's UUID, or host and worker where it has none."""
    device_name: str
    """The GPU's name, or the CPU's model."""
    host: str
    reason: str
    """On what evidence, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """The fleet is over: every search ended."""

    kind: ClassVar[str] = "run_ended"
    failed: int
    """Searches that failed."""


EventBody = (
    SearchStarted
    | SearchExtended
    | ExpansionAsked
    | PromptSent
    | AnswerReceived
    | AgentCalled
    | CandidateMade
    | VerdictReached
    | EvidenceTaken
    | FindingsMade
    | ProfileAnalysed
    | MemoryUpdated
    | Told
    | ExpansionCancelled
    | SearchEnded
    | DeviceQuarantined
    | RunEnded
)

EVENT_TYPES: dict[str, type[EventBody]] = {
    body.kind: body
    for body in (
        SearchStarted,
        SearchExtended,
        ExpansionAsked,
        PromptSent,
        AnswerReceived,
        AgentCalled,
        CandidateMade,
        VerdictReached,
        EvidenceTaken,
        FindingsMade,
        ProfileAnalysed,
        MemoryUpdated,
        Told,
        ExpansionCancelled,
        SearchEnded,
        DeviceQuarantined,
        RunEnded,
    )
}

_FIELDS = {
    kind: (
        tuple(field.name for field in fields(event_type) if field.default is MISSING),
        tuple(field.name for field in fields(event_type) if field.default is not MISSING),
    )
    for kind, event_type in EVENT_TYPES.items()
}
"""Kind to the fields that it must have, and to those with a default: they came later than the
schema, and older journals do not have them."""


def body_to_json(body: EventBody) -> dict[str, Any]:
    """Return the event's own fields as plain JSON values, `kind` first."""
    return {"kind": body.kind, **asdict(body)}


def body_from_json(record: dict[str, Any]) -> EventBody:
    """Return the event of a journal line; the envelope's keys are ignored.

    Raises:
        ValueError: the kind is unknown or a field is missing.
    """
    kind = record.get("kind")
    event_type = EVENT_TYPES.get(str(kind))
    if event_type is None:
        raise ValueError(f"unknown event kind {kind!r}; there are: {', '.join(EVENT_TYPES)}")
    required, optional = _FIELDS[event_type.kind]
    try:
        values = {name: record[name] for name in required}
    except KeyError:
        missing = [name for name in required if name not in record]
        raise ValueError(f"event {kind!r} lacks {', '.join(missing)}") from None
    for name in optional:
        if name in record:
            values[name] = record[name]
    return event_type(**values)
