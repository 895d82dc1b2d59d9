"""The planner's words, read: a plan, a query, or why they are neither. Untrusted text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kopt.prompts.excerpts import short_line
from kopt.prompts.json_objects import json_objects, no_object
from kopt.prompts.labels import first_sentence
from kopt.prompts.templates import filled

MAX_DIRECTION = 120
MAX_FIELD = 1_500
"""Characters of one field of a plan."""
MAX_HINTS = 6
MAX_WORDS = 200
"""Characters of what a query looks for."""
QueryKind = Literal["profile", "source", "memory"]
QUERY_KINDS: tuple[QueryKind, ...] = ("profile", "source", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One change to one version, as its executor is told."""

    direction: str
    """The approach in a few words: what it is compared with others by; labels the candidate."""
    change: str
    bottleneck: str = ""
    construct: str = ""
    hints: tuple[str, ...] = ()
    expected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What the planner wants to see."""

    kind: QueryKind
    words: str = ""
    """The aspect of the profile, or what to look for in the memory."""


def read_step(text: str) -> Plan | Query | str:
    """Return the plan or the query of an answer; else why it is neither, in one line.

    The first object that is one of them counts; the fields of a plan may also stand by themselves.
    """
    fault = no_object(text)
    for value in json_objects(text):
        named = {str(key).casefold(): each for key, each in value.items()}
        plan = named.get("plan")
        if isinstance(plan, str) and plan.strip():
            return plan_of_words(plan)
        fields = plan if isinstance(plan, Mapping) else named
        read = _plan({str(key).casefold(): each for key, each in fields.items()})
        if read is None and "query" in named:
            return _query(named)
        if read is not None:
            return read
        fault = "an object that is neither a plan (`direction`, `change`) nor a query"
    return fault


def plan_of_words(text: str) -> Plan:
    """Return a plan of free words: of a planner that keeps to no form."""
    line = " ".join(text[: 8 * MAX_FIELD].split())
    direction = first_sentence(line) or line
    return Plan(
        direction=short_line(direction, max_characters=MAX_DIRECTION),
        change=short_line(line, max_characters=MAX_FIELD),
    )


def plan_text(plan: Plan) -> str:
    """Return a plan as its executor reads it."""
    hints = "\n".join(f"- {hint}" for hint in plan.hints)
    expected = f"Expected: {plan.expected}" if plan.expected else ""
    return filled(
        "agent_plan",
        direction=plan.direction,
        bottleneck=plan.bottleneck or "not named",
        construct=plan.construct or "not named",
        change=plan.change,
        hints="\n".join(filter(None, (expected, hints))),
    )


def _plan(fields: Mapping[str, object]) -> Plan | None:
    change = _line(fields.get("change"), most=MAX_FIELD)
    direction = _line(fields.get("direction"), most=MAX_DIRECTION)
    if not change and not direction:
        return None
    hints = fields.get("hints", ())
    listed = hints if isinstance(hints, list) else [hints]
    return Plan(
        direction=direction or _line(first_sentence(change) or change, most=MAX_DIRECTION),
        change=change or direction,
        bottleneck=_line(fields.get("bottleneck"), most=MAX_FIELD),
        construct=_line(fields.get("construct"), most=MAX_FIELD),
        hints=tuple(filter(None, (_line(each, most=MAX_FIELD) for each in listed[:MAX_HINTS]))),
        expected=_line(fields.get("expected"), most=MAX_FIELD),
    )


def _query(fields: Mapping[str, object]) -> Query | str:
    kind = str(fields.get("query")).strip().casefold()
    for known in QUERY_KINDS:
        if known == kind:
            words = fields.get("aspect") or fields.get("words")
            return Query(kind=known, words=_line(words, most=MAX_WORDS))
    return f"there is no query of that kind; there are: {', '.join(QUERY_KINDS)}"


def _line(value: object, *, most: int) -> str:
    if isinstance(value, list):  # steps that were asked for as one text
        value = " ".join(each for each in value if isinstance(each, str))
    if not isinstance(value, str):
        return ""
    return short_line(" ".join(value[: 8 * most].split()), max_characters=most)
