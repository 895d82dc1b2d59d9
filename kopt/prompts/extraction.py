"""The extractor's prompt and answer (KernelPro §3.4): an iteration in, entries of the memory out.

The answer is a model's, and what it was shown is another's: it is read within bounds, and what
cannot be read is a fault in one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kopt.memory.entry import HEADINGS, MAX_NEW, MAX_TEXT, TITLES, MemoryEntry, entry_of
from kopt.ports import Attempt, ExtractionRequest, Message
from kopt.prompts.budget import BUDGET, Budget
from kopt.prompts.excerpts import fenced, middle_out, short_line, source_block
from kopt.prompts.finding_text import findings_text
from kopt.prompts.hardware_text import device_text
from kopt.prompts.json_objects import json_objects, no_object
from kopt.prompts.memory_text import entries_text
from kopt.prompts.templates import filled
from kopt.prompts.verdict_text import verdict_text

MAX_SOURCE = 6_000
"""Characters of each candidate's source: what it tried, not how it ends."""
MAX_CALLS = 12
"""Tool calls that are shown; their results are cut to a few lines each."""
MAX_RESULT = 600
MAX_READ = 16
"""Sentences read under one key."""


class ExtractionReading(NamedTuple):
    """What an answer came to."""

    entries: tuple[MemoryEntry, ...] | None
    fault: str
    """Why there are none, in one line; empty where they were read."""


def build_extraction(request: ExtractionRequest, *, budget: Budget = BUDGET) -> tuple[Message, ...]:
    """Return the messages that ask for entries: equal requests give equal ones."""
    reference = source_block(request.problem.source, max_characters=MAX_SOURCE)
    known = entries_text(request.known, max_characters=budget.memory)
    parts = [
        filled("reference", source=reference, cast=""),
        filled("notebook", entries=known) if known else "",
        _parent(request, budget),
        filled(
            "iteration", mode=request.iteration.mode, outcomes=_outcomes(request, budget=budget)
        ),
        filled("extraction", most=MAX_NEW, characters=MAX_TEXT),
    ]
    system = "\n\n".join((filled("extractor"), device_text(request.target)))
    return (Message("system", system), Message("user", "\n\n".join(filter(None, parts))))


def read_extraction(text: str) -> ExtractionReading:
    """Return the entries of an answer: the first JSON object in it that has one of the keys."""
    fault = no_object(text)
    for value in json_objects(text):
        entries = _entries(value)
        if entries is not None:
            return ExtractionReading(entries, "")
        fault = f"an object without any of {', '.join(HEADINGS)}"
    return ExtractionReading(None, f"no lessons: {fault}")


def _entries(value: Mapping[str, object]) -> tuple[MemoryEntry, ...] | None:
    named = {_plain(str(key)): each for key, each in value.items()}
    keys = {heading: (heading, _plain(TITLES[heading])) for heading in HEADINGS}
    if not any(key in named for each in keys.values() for key in each):
        return None
    entries = []
    for heading in HEADINGS:
        listed = next((named[key] for key in keys[heading] if key in named), [])
        if isinstance(listed, str):
            listed = [listed]
        for said in listed[:MAX_READ] if isinstance(listed, list) else ():
            entry = entry_of(heading, said if isinstance(said, str) else "")
            if entry.text:
                entries.append(entry)
    return tuple(entries)


def _plain(key: str) -> str:
    """Return a key as headings are spelled: `Errors & Corrections` is `errors_corrections`."""
    return "_".join(key.casefold().replace("&", " ").replace("_", " ").split())


def _parent(request: ExtractionRequest, budget: Budget) -> str:
    parent = request.parent
    if parent is None:
        return ""
    lines = [_attempt(parent, budget=budget, with_source=False)]
    if parent.findings:
        lines.append(findings_text(parent.findings, max_characters=budget.findings // 2))
    return "## What was expanded\n\n" + "\n\n".join(filter(None, lines))


def _outcomes(request: ExtractionRequest, *, budget: Budget) -> str:
    iteration = request.iteration
    parts = [
        f"### Version {number}\n\n{_attempt(attempt, budget=budget, with_source=True)}"
        for number, attempt in enumerate(request.written, start=1)
    ]
    calls = [
        f"- {call.get('name', '')}({short_line(str(call.get('arguments', '')))}):\n"
        + fenced(middle_out(str(call.get("result", "")), max_characters=MAX_RESULT))
        for call in iteration.calls[:MAX_CALLS]
    ]
    if len(iteration.calls) > MAX_CALLS:
        calls.append(f"- … {len(iteration.calls) - MAX_CALLS} more calls left out …")
    if calls:
        parts.append("\n".join(["### Tools that were called", "", *calls]))
    faults = [f"- {short_line(fault)}" for fault in iteration.faults]
    if faults:
        parts.append("\n".join(["### Answers without a version", "", *faults]))
    return "\n\n".join(parts)


def _attempt(attempt: Attempt, *, budget: Budget, with_source: bool) -> str:
    candidate = attempt.candidate
    parts = [f"Written in {candidate.language}. Strategy: {candidate.strategy or 'none stated'}"]
    if with_source:
        parts.append(source_block(candidate.source, max_characters=MAX_SOURCE))
    parts.append(verdict_text(attempt.evaluation, log_characters=budget.log // 2))
    return "\n\n".join(parts)
