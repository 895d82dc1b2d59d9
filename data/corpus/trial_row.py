"""The rows of a search, without their texts: what was tried, how it came about, what became of it.

A row for each slot that was filled, and for each completion that held no candidate. Texts are
artefacts of the run and are named here by their sha256: a search of thousands of rows stays small.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kopt.data.corpus.gathering import GatheredExpansion, GatheredProfile, GatheredSearch
from kopt.data.corpus.losses import Losses
from kopt.data.corpus.raw_events import Event
from kopt.data.results import DEVICE_STAGES
from kopt.identity import canonical_json

FINDING_COLUMNS = ("findings", "remarks", "energy_notes", "left_out", "silent")


@dataclass(slots=True, kw_only=True)
class Judged:
    """What became of a candidate, as far as rows are chosen by it."""

    text: str
    """The evaluation as JSON."""
    kind: str
    cached: bool
    ladder: str
    track: str
    device: str
    degenerate: bool
    speedup: float | None
    """Baseline ÷ candidate; None unless correct, and so are those below."""
    speedup_ci: tuple[float, float] | None
    time_us: float | None
    baseline_us: float | None
    samples_us: list[float] | None
    baseline_samples_us: list[float] | None
    sol_share: float | None
    reason: str
    gpu_s: float
    """Seconds of the device; 0 where it was cached."""

    @property
    def is_correct(self) -> bool:
        """Whether it passed every check and was timed."""
        return self.kind == "correct"


@dataclass(slots=True, kw_only=True)
class TrialRow:
    """One row, its texts by sha256."""

    expansion: Event
    """The event that asked for it."""
    prompt: str | None
    """Artefact of the messages."""
    sampling: str | None
    """JSON."""
    answer: Event | None
    """The completion; None where none is known to be its own."""
    pays: bool
    """Whether the completion's cost is this row's: a completion of several candidates is paid for
    once."""
    made: Event | None
    """The candidate; None where the completion held none."""
    judged: Judged | None
    node: int | None
    reward: float | None
    energy_reduction: float | None
    profile: GatheredProfile | None
    lineage: tuple[int, ...]
    """Nodes from ROOT's child to the parent."""

    @property
    def candidate(self) -> str | None:
        """Id of the candidate."""
        return None if self.made is None else self.made["candidate"]


def trial_rows(search: GatheredSearch, losses: Losses) -> Iterator[TrialRow]:
    """Give the rows of a search, by expansion, slots before completions that held none.

    Args:
        search: as it was gathered.
        losses: told of expansions without an answer, verdicts that cannot be read, and candidates
            whose completion is not known.
    """
    parents = _parents(search)
    for ordinal, expansion in search.expansions.items():
        parent_node = expansion.asked["parent_node"]
        lineage = _lineage(parents, parent_node)
        if not expansion.answers and not expansion.made:
            losses.lose("expansion without an answer", f"{search.name} expansion {ordinal}")
        own = _completions(expansion, losses, where=f"{search.name} expansion {ordinal}")
        paid: set[int] = set()
        for slot, made in sorted(expansion.made.items()):
            answer = own.get(slot)
            pays = answer is not None and answer["index"] not in paid
            if answer is not None:
                paid.add(answer["index"])
            told = expansion.told.get(slot)
            yield _row(
                search,
                expansion,
                lineage=lineage,
                answer=answer,
                pays=pays,
                made=made,
                judged=_judged(expansion.verdicts.get(slot), losses, search=search.name),
                told=told,
            )
        for index, answer in sorted(expansion.answers.items()):
            if index not in paid and (answer["fault"] or answer["text"] or not expansion.made):
                yield _row(search, expansion, lineage=lineage, answer=answer, pays=True)


def _row(
    search: GatheredSearch,
    expansion: GatheredExpansion,
    *,
    lineage: tuple[int, ...],
    answer: Event | None,
    pays: bool,
    made: Event | None = None,
    judged: Judged | None = None,
    told: Event | None = None,
) -> TrialRow:
    prompt = _prompt_of(expansion, answer)
    return TrialRow(
        expansion=expansion.asked,
        prompt=None if prompt is None else prompt["messages"],
        sampling=None if prompt is None else prompt["sampling"],
        answer=answer,
        pays=pays,
        made=made,
        judged=judged,
        node=None if told is None else told["node"],
        reward=None if told is None else told["reward"],
        energy_reduction=None if told is None else told.get("energy_reduction"),
        profile=None if made is None else search.profiles.get(made["candidate"]),
        lineage=lineage,
    )


def _prompt_of(expansion: GatheredExpansion, answer: Event | None) -> Event | None:
    """Return what a completion answers: the expansion's prompt, or the call of a role.

    Each idea of several roles has a conversation of its own; the call with its words is meant.
    """
    if expansion.prompt is not None or answer is None or answer["text"] is None:
        return expansion.prompt
    said = (call for call in reversed(expansion.calls) if call["text"] == answer["text"])
    return next(said, None)


def _completions(expansion: GatheredExpansion, losses: Losses, *, where: str) -> dict[int, Event]:
    """Return the completion that each filled slot came from, as far as that is certain.

    A completion without a fault holds a candidate, and slots are filled in their order; one that
    was asked for several candidates holds them all.
    """
    good = [answer for _, answer in sorted(expansion.answers.items()) if not answer["fault"]]
    slots = sorted(expansion.made)
    if len(good) == 1:
        return dict.fromkeys(slots, good[0])
    if len(good) >= len(slots) or not good:
        return dict(zip(slots, good, strict=False))
    losses.lose("candidate of an unknown completion", where, times=len(slots))
    return {}


def _judged(event: Event | None, losses: Losses, *, search: str) -> Judged | None:
    if event is None:
        return None
    try:
        record: dict[str, Any] = json.loads(event["eval"])
        interval = record["speedup_ci"]
        timeline_s = record["timeline_s"]
        gpu_s = sum(timeline_s.get(stage, 0.0) for stage in DEVICE_STAGES)
        return Judged(
            text=event["eval"],
            kind=record["kind"],
            cached=event["cached"],
            ladder=record["ladder"],
            track=record["track"],
            device=record["device"],
            degenerate=record["degenerate"],
            speedup=record["speedup"],
            speedup_ci=None if interval is None else (interval[0], interval[1]),
            time_us=record["time_us"],
            baseline_us=record["baseline_us"],
            samples_us=record.get("samples_us"),
            baseline_samples_us=record.get("baseline_samples_us"),
            sol_share=record["sol_share"],
            reason=record["reason"],
            gpu_s=0.0 if event["cached"] else gpu_s,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        losses.lose("verdict that cannot be read", f"{search} seq {event['seq']}", why=repr(error))
        return None


def findings_json(profile: GatheredProfile) -> str | None:
    """Return what tools concluded, as one JSON object; None where they were not asked."""
    event = profile.findings
    if event is None:
        return None
    fields = {name: event.get(name) for name in FINDING_COLUMNS}
    return canonical_json(
        {
            name: json.loads(value) if isinstance(value, str) else value
            for name, value in fields.items()
        }
    )


def _parents(search: GatheredSearch) -> dict[int, int]:
    """Node to parent node, of every node that the tree was told of."""
    return {
        told["node"]: expansion.asked["parent_node"]
        for expansion in search.expansions.values()
        for told in expansion.told.values()
    }


def _lineage(parents: dict[int, int], node: int) -> tuple[int, ...]:
    nodes: list[int] = []
    while node in parents and len(nodes) <= len(parents):
        nodes.append(node)
        node = parents[node]
    return tuple(reversed(nodes))
