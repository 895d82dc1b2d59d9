"""Guidelines: which techniques paid in which kind of work, over everything that runs tried.

Source: KernelOPT App. C: what an earlier corpus taught is told to a planner before its first step.
The tallies are those of the strategy tracker (kopt.memory.tracker), so that `tracker.json` of an
export is a cold start: `memory.tracker=OUT/tracker.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from kopt.data.corpus.trial_row import TrialRow
from kopt.data.exports.searched import Searched
from kopt.errors import StoreError
from kopt.memory.tracker import Tally, advice_of, summed, tallies_of
from kopt.memory.tried import Tried
from kopt.verdict import VerdictKind

SCHEMA_VERSION = 1


def search_tallies(searched: Searched) -> tuple[Tally, ...]:
    """Return how often each technique was tried in a search, and how often it paid."""
    problem = searched.texts.problem(searched.problem)
    family = "" if problem is None else problem.family
    return tallies_of(_tried(searched), family=family)


def guidelines_json(tallies: Iterable[Tally]) -> dict[str, Any]:
    """Return tallies with what they come to, as one JSON object.

    `advice` is `AVOID`, `PREFER` or null (KernelOPT §4.5, App. C); an empty `family` or
    `bottleneck` is one that is not known.
    """
    groups: list[dict[str, Any]] = [
        {
            "technique": each.label,
            "family": each.family,
            "bottleneck": each.bottleneck,
            "tried": each.tried,
            "succeeded": each.succeeded,
            "advice": advice_of(tried=each.tried, succeeded=each.succeeded),
        }
        for each in summed(tallies)
    ]
    groups.sort(key=lambda one: (-one["tried"], one["technique"], one["family"], one["bottleneck"]))
    return {"schema": SCHEMA_VERSION, "guidelines": groups}


def guidelines_text(found: dict[str, Any]) -> str:
    """Return guidelines for people: what to prefer and what to avoid, most tried first."""
    lines = []
    for advice, head in (("PREFER", "Paid every time"), ("AVOID", "Seldom paid")):
        rows = [each for each in found["guidelines"] if each["advice"] == advice]
        if rows:
            lines += [f"## {head}", ""]
        for each in rows:
            where = ", ".join(filter(None, (each["family"], each["bottleneck"]))) or "any work"
            lines.append(
                f"- {each['technique']} ({where}): {each['succeeded']} of {each['tried']} tries"
            )
        lines += [""] if rows else []
    return "\n".join(lines) or "No technique was tried often enough to say anything of it.\n"


def _tried(searched: Searched) -> Iterator[tuple[Tried, str]]:
    for row in searched.chosen():
        judged, made = row.judged, row.made
        if judged is None or made is None:
            searched.leave_out("not judged")
            continue
        parent = searched.turns.parent(row)
        before = None if parent is None else parent.judged
        tried = Tried(
            candidate=made["candidate"],
            parent=made["parent"],
            expansion=row.expansion["expansion"],
            strategy=" ".join(searched.texts.redactor.text(made["strategy"]).split()),
            language=made["language"],
            kind=cast("VerdictKind", judged.kind),
            reason="",
            speedup=judged.speedup,
            speedup_ci=judged.speedup_ci,
            over=before.speedup or 1.0 if before is not None and before.is_correct else 1.0,
            parent_kind=None if before is None else cast("VerdictKind", before.kind),
        )
        yield tried, _bottleneck(parent, searched=searched)


def _bottleneck(parent: TrialRow | None, *, searched: Searched) -> str:
    """Class of what was changed; empty where that was not profiled."""
    ref = None if parent is None or parent.profile is None else parent.profile.evidence["ref"]
    text = None if ref is None else searched.texts.text(ref)
    try:
        roofline = json.loads(text or "{}").get("roofline") or {}
    except (ValueError, AttributeError, StoreError):
        return ""
    return str(roofline.get("class") or "")
