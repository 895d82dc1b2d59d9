"""The summarizer's prompt and answer (KernelOPT App. A.3): a step in, entries of the memory out.

An item of the paper has fourteen fields; here it becomes one entry of the search's memory, under
the heading of its outcome. The memory only grows: what the paper replaces or skips, a summarizer
that is shown the notebook leaves out. What cannot be read is a fault in one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kopt.memory.entry import MAX_NEW, Heading, MemoryEntry, entry_of
from kopt.memory.tried import Tried
from kopt.ports import Attempt, ExtractionRequest, Message
from kopt.prompts.budget import BUDGET, Budget, fitted
from kopt.prompts.evidence_text import rules_text
from kopt.prompts.excerpts import short_line, source_block
from kopt.prompts.extraction import ExtractionReading
from kopt.prompts.finding_text import findings_text
from kopt.prompts.hardware_text import device_text
from kopt.prompts.history_text import outcome_line
from kopt.prompts.json_objects import json_objects, no_object
from kopt.prompts.memory_text import entries_text
from kopt.prompts.templates import filled
from kopt.prompts.tokens import MESSAGE, estimated_tokens
from kopt.prompts.verdict_text import verdict_text
from kopt.tools.feedback import feedback

MAX_FIELD = 160
"""Characters of one field of an item."""
HEADINGS: dict[str, Heading] = {
    "gain": "successful_patterns",
    "loss": "errors_corrections",
    "failure": "errors_corrections",
}
"""Outcome of an item to its heading."""
_GIVE_WAY = ("memory", "findings", "log", "version", "reference")


def summary_prompt(request: ExtractionRequest, *, tokens: int) -> tuple[Message, ...]:
    """Return the messages that ask for items: equal requests give equal ones.

    Args:
        request: the step that is over.
        tokens: of the whole, about.
    """
    system = "\n\n".join((filled("agent_summarizer"), device_text(request.target)))
    budget = replace(BUDGET, version=12_000, reference=6_000)
    left = tokens - estimated_tokens(system) - 2 * MESSAGE
    budget = fitted(budget, lambda tried: _step(request, tried), tokens=left, give_way=_GIVE_WAY)
    return (Message("system", system), Message("user", _step(request, budget)))


def read_summary(text: str) -> ExtractionReading:
    """Return the entries of an answer: of the first object that lists items."""
    fault = no_object(text)
    for value in json_objects(text):
        items = value.get("items", value.get("experience_item"))
        if isinstance(items, Mapping):
            items = [items]
        if isinstance(items, list):
            entries = [_entry(each) for each in items[:MAX_NEW] if isinstance(each, Mapping)]
            return ExtractionReading(tuple(each for each in entries if each.text), "")
        fault = "an object without `items`"
    return ExtractionReading(None, f"no experience: {fault}")


def _entry(item: Mapping[str, object]) -> MemoryEntry:
    fields = {str(key).casefold(): _line(each) for key, each in item.items()}
    direction, insight = fields.get("direction", ""), fields.get("insight", "")
    if not insight:
        return entry_of("learnings", "")
    heading = HEADINGS.get(fields.get("outcome", ""), "learnings")
    signal = f" [{fields['signal']}]" if fields.get("signal") else ""
    parts = [f"{direction}{signal}: {insight}" if direction else f"{insight}{signal}"]
    for key, label in (
        ("pattern", "pattern"),
        ("applies_when", "applies when"),
        ("not_when", "not when"),
    ):
        if fields.get(key):
            parts.append(f"{label}: {fields[key].rstrip('.')}")
    return entry_of(heading, "; ".join(part.rstrip(" .") for part in parts))


def _line(value: object) -> str:
    if not isinstance(value, str):
        return ""
    return short_line(" ".join(value[: 8 * MAX_FIELD].split()), max_characters=MAX_FIELD)


def _step(request: ExtractionRequest, budget: Budget) -> str:
    reference = source_block(request.problem.source, max_characters=budget.reference)
    known = entries_text(request.known, max_characters=budget.memory)
    parts = [
        filled("reference", source=reference, cast=""),
        filled("notebook", entries=known) if known else "",
        _before(request.parent, budget),
        *(
            _after(attempt, _tried_of(attempt, request), budget, number=number)
            for number, attempt in enumerate(request.written, start=1)
        ),
        "\n".join(
            f"- no program came of an answer: {short_line(each)}" for each in _faults(request)
        ),
        filled("agent_summary", most=MAX_NEW, characters=MAX_FIELD),
    ]
    return "\n\n".join(filter(None, parts))


def _before(parent: Attempt | None, budget: Budget) -> str:
    if parent is None:
        return ""
    profile = ""
    if parent.evidence is not None:
        profile = rules_text(feedback(parent.evidence, mode="rules").rules)
    found = findings_text(parent.findings, max_characters=budget.findings // 2)
    source = source_block(parent.candidate.source, max_characters=budget.version // 2)
    parts = [
        "## The program before",
        source,
        verdict_text(parent.evaluation, log_characters=budget.log // 2),
        profile,
        found if parent.findings else "",
    ]
    return "\n\n".join(filter(None, parts))


def _after(attempt: Attempt, tried: Tried | None, budget: Budget, *, number: int) -> str:
    source = source_block(attempt.candidate.source, max_characters=budget.version // 2)
    line = f"- {outcome_line(tried)}" if tried is not None else ""
    strategy = attempt.candidate.strategy or "none stated"
    parts = [
        f"## A program after it ({number}). What was meant: {strategy}",
        source,
        verdict_text(attempt.evaluation, log_characters=budget.log // 2),
        line,
    ]
    return "\n\n".join(filter(None, parts))


def _tried_of(attempt: Attempt, request: ExtractionRequest) -> Tried | None:
    wanted = attempt.candidate.candidate_id
    return next((each for each in request.iteration.tried if each.candidate == wanted), None)


def _faults(request: ExtractionRequest) -> tuple[str, ...]:
    return request.iteration.faults
