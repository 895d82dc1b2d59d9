"""Events gathered to finished searches: one at a time, so that memory holds what is under way.

Unlike the fold (kopt.data.fold) it takes what there is: an event that fits nowhere is counted, and
its search goes on without it. A search is given after its last end, or where the journal ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kopt.data.corpus.losses import Losses
from kopt.data.corpus.raw_events import Event, raw_events, search_ends


@dataclass(slots=True)
class GatheredExpansion:
    """What the journal has of one expansion."""

    asked: Event
    prompt: Event | None = None
    calls: list[Event] = field(default_factory=list)
    """Of the roles that wrote it, in the order made (pipeline=agents)."""
    answers: dict[int, Event] = field(default_factory=dict)
    """Completion to answer."""
    made: dict[int, Event] = field(default_factory=dict)
    """Slot to candidate; `verdicts` and `told` likewise."""
    verdicts: dict[int, Event] = field(default_factory=dict)
    told: dict[int, Event] = field(default_factory=dict)
    cancelled: Event | None = None


@dataclass(slots=True)
class GatheredProfile:
    """What the journal has of one candidate's profile."""

    evidence: Event
    findings: Event | None = None
    analysis: Event | None = None


@dataclass(slots=True)
class GatheredSearch:
    """What the journal has of one search."""

    started: Event
    expansions: dict[int, GatheredExpansion] = field(default_factory=dict)
    """Ordinal to expansion, in the order asked."""
    profiles: dict[str, GatheredProfile] = field(default_factory=dict)
    """Candidate id to profile."""
    has_ended: bool = False
    """Whether nothing is under way in it: it ended, and was not taken up again."""

    @property
    def name(self) -> str:
        """`problem/arm/seed`, unique in the run."""
        return str(self.started["search"])


def gathered(journal: Path, losses: Losses) -> Iterator[GatheredSearch]:
    """Give each search of a journal, in the order in which they ended; the unfinished ones last.

    Args:
        journal: its folder.
        losses: told of what cannot be read, and of events that fit nowhere.

    Raises:
        StoreError: the folder cannot be listed.
    """
    ends = search_ends(journal)
    searches: dict[str, GatheredSearch] = {}
    for event in raw_events(journal, losses):
        kind, name = event["kind"], event["search"]
        if not name:  # of the whole run
            continue
        if kind == "search_started":
            if name in searches:
                losses.lose("event that fits nowhere", _place(event), why="started before")
            else:
                searches[name] = GatheredSearch(started=event)
            continue
        search = searches.get(name)
        if search is None:
            losses.lose("event that fits nowhere", _place(event), why="its search was not started")
            continue
        why = _take(search, event)
        if why:
            losses.lose("event that fits nowhere", _place(event), why=why)
        if kind == "search_ended" and ends.get(name) == event["seq"]:
            yield searches.pop(name)
    yield from searches.values()


def _place(event: Event) -> str:
    return f"seq {event['seq']} {event['kind']}"


def _take(search: GatheredSearch, event: Event) -> str:
    """Take an event in; return why it fits nowhere, or an empty text."""
    kind = event["kind"]
    search.has_ended = kind == "search_ended"
    if kind in ("search_ended", "search_extended", "memory_updated"):
        return ""
    ordinal = event.get("expansion")
    if not isinstance(ordinal, int):
        return "it names no expansion"
    if kind == "expansion_asked":
        if ordinal in search.expansions:
            return "asked before"
        search.expansions[ordinal] = GatheredExpansion(asked=event)
        return ""
    if kind in ("evidence", "findings", "profile_analysis"):
        return _take_profile(search, event)
    expansion = search.expansions.get(ordinal)
    if expansion is None:
        return f"expansion {ordinal} was not asked"
    if kind == "prompt_sent":
        expansion.prompt = event
        return ""
    if kind == "agent_call":
        expansion.calls.append(event)
        return ""
    if kind == "expansion_cancelled":
        expansion.cancelled = event
        return ""
    slots = {
        "answer_received": expansion.answers,
        "candidate_made": expansion.made,
        "verdict": expansion.verdicts,
        "told": expansion.told,
    }[kind]
    index = event["index"]
    if index in slots:
        return f"{index} of expansion {ordinal} was there before"
    if kind in ("verdict", "told") and index not in expansion.made:
        return f"slot {index} of expansion {ordinal} has no candidate"
    slots[index] = event
    return ""


def _take_profile(search: GatheredSearch, event: Event) -> str:
    if event.get("is_reference"):
        return ""
    known = search.profiles.get(event["candidate"])
    if event["kind"] == "evidence":
        if known is not None:
            return "profiled before"
        search.profiles[event["candidate"]] = GatheredProfile(evidence=event)
    elif known is None:
        return "no evidence of that candidate"
    elif event["kind"] == "findings":
        known.findings = event
    else:
        known.analysis = event
    return ""
