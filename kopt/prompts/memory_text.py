"""The memory in words: of earlier runs strategies and a precedent, of the search five sections.

KernelPro puts its memory into the system message; here it stands among what changes, so that a
server still knows the start of the prompt (prefix caching). The journal has everything; what does
not fit is left out visibly, the oldest first, each section keeping its newest.
"""

from __future__ import annotations

from collections.abc import Sequence

from kopt.memory.entry import HEADINGS, TITLES, Heading, MemoryEntry
from kopt.memory.precedent import Precedent
from kopt.memory.tracker import StrategyRecord, pertinent
from kopt.memory.tried import Tried
from kopt.ports import WriteRequest
from kopt.prompts.budget import Budget
from kopt.prompts.excerpts import fenced, middle_out, short_line
from kopt.prompts.history_text import outcome_line
from kopt.prompts.templates import filled

MIN_SOURCE = 400
"""Characters of a precedent's source below which it is left out."""
_ADVICE = {
    "AVOID": "AVOID: it rarely paid",
    "PREFER": "PREFER: it has always paid",
}


def memory_section(request: WriteRequest, budget: Budget) -> str:
    """Return the section of a prompt; empty where nothing is remembered."""
    evidence = None if request.parent is None else request.parent.evidence
    roofline = None if evidence is None else evidence.roofline
    bottleneck = None if roofline is None else roofline.bottleneck
    memory = request.memory
    strategies = _strategies(
        pertinent(memory.strategies, bottleneck=bottleneck),
        max_characters=budget.memory // 4,
    )
    precedent = _precedent(memory.precedent, max_characters=budget.memory // 2)
    left = budget.memory - len(strategies) - len(precedent)
    experience = _experience(
        memory.experience, max_characters=left // 2 if memory.entries else left
    )
    entries = entries_text(
        _not_told_twice(request),
        max_characters=max(0, left - len(experience)),
    )
    blocks = (strategies, precedent, experience, entries)
    text = "\n\n".join(filter(None, blocks))
    return filled("memory", memory=text) if text else ""


def guidelines_section(request: WriteRequest, budget: Budget) -> str:
    """Return the shipped guidelines of the target's kind of device; empty where they are off."""
    if not request.memory.guidelines:
        return ""
    text = filled("guidelines_cpu" if request.target.device == "cpu" else "guidelines_cuda")
    return middle_out(text, max_characters=budget.guidelines)


def _not_told_twice(request: WriteRequest) -> tuple[MemoryEntry, ...]:
    """Leave out lessons by rule on versions that the prompt tells of: they begin with an idea."""
    history, parent = request.history, request.parent
    ideas = [each.strategy for each in (*history.lineage, *history.siblings)]
    if parent is not None:
        ideas.append(parent.candidate.strategy)
    plain = (" ".join(idea.split()).rstrip(" .") for idea in ideas)
    told = tuple(f"{idea}: " for idea in plain if idea)
    return tuple(entry for entry in request.memory.entries if not entry.text.startswith(told))


def entries_text(entries: Sequence[MemoryEntry], *, max_characters: int) -> str:
    """Return the entries under their headings, as many of the newest of each as fit.

    Sections take turns from their newest entry back, so that a search full of errors still tells
    its few patterns that worked.

    Args:
        entries: in the order learned.
        max_characters: bound of the whole.
    """
    waiting: dict[Heading, list[MemoryEntry]] = {heading: [] for heading in HEADINGS}
    for entry in entries:
        waiting[entry.heading].append(entry)
    shown: dict[Heading, list[str]] = {heading: [] for heading in HEADINGS}
    used = 0
    is_full = False
    while not is_full and any(waiting.values()):
        for heading in HEADINGS:
            if not waiting[heading]:
                continue
            line = f"- {waiting[heading][-1].text}"
            title = 0 if shown[heading] else len(TITLES[heading]) + 40
            used += len(line) + 1 + title
            if used > max_characters:
                is_full = True
                break
            waiting[heading].pop()
            shown[heading].insert(0, line)
    parts = []
    for heading in HEADINGS:
        left_out = len(waiting[heading])
        if not shown[heading] and not left_out:
            continue
        more = [f"- … {left_out} earlier left out …"] if left_out else []
        parts.append("\n".join([f"### {TITLES[heading]}", "", *more, *shown[heading]]))
    return "\n\n".join(parts)


def _strategies(records: Sequence[StrategyRecord], *, max_characters: int) -> str:
    """Return the tracker's records, the most tried first, as many as fit."""
    lines = []
    for record in records:
        kind = "problems" if record.group == "family" else "bottleneck"
        lines.append(
            f"- {record.label}: {_ADVICE[record.advice]} ({record.succeeded} of {record.tried} "
            f"tries, {kind} of kind {record.name})"
        )
    title = "### Strategies in earlier runs"
    return _listed(title, lines, rest="less tried", max_characters=max_characters)


def _precedent(precedent: Precedent | None, *, max_characters: int) -> str:
    """Return how a past problem was made fast: its steps, then as much of the source as fits."""
    if precedent is None:
        return ""
    kind = f" of kind {precedent.family}" if precedent.family else ""
    lines = [f"- … {precedent.older} earlier left out …"] if precedent.older else []
    for step in precedent.steps:
        speedup = "" if step.speedup is None else f", {step.speedup:.3g}x"
        lines.append(short_line(f"- {step.strategy or 'no words'}: {step.kind or 'lost'}{speedup}"))
    head = (
        f"Another problem{kind} was made {precedent.speedup:.3g}x as fast as its baseline. It "
        "computes something else: take over ideas that fit, no numbers. Step by step:"
    )
    told = "\n".join(["### A problem alike, in earlier runs", "", head, "", *lines])
    left = max_characters - len(told)
    if left < MIN_SOURCE:
        return middle_out(told, max_characters=max_characters)
    source = fenced(middle_out(precedent.source, max_characters=left), info="python")
    return f"{told}\n\nIts fastest version ({precedent.language}):\n\n{source}"


def _experience(items: Sequence[Tried], *, max_characters: int) -> str:
    """Return the queue, the newest first, as many as fit."""
    lines = []
    for item in reversed(items):
        signal = f" Seen before it: {item.signal}." if item.signal else ""
        lines.append(short_line(f"- {outcome_line(item)}.{signal}"))
    title = "### What changes did, the latest first"
    return _listed(title, lines, rest="older", max_characters=max_characters)


def _listed(title: str, lines: Sequence[str], *, rest: str, max_characters: int) -> str:
    """Return a list under its title, its first line and as many more as fit; empty without lines.

    Args:
        title: a heading.
        lines: of the list.
        rest: what those are that do not fit.
        max_characters: of the lines that are shown.
    """
    if not lines:
        return ""
    shown: list[str] = []
    used = 0
    for line in lines:
        used += len(line) + 1
        if shown and used > max_characters:
            break
        shown.append(line)
    left_out = len(lines) - len(shown)
    more = [f"- … {left_out} {rest} left out …"] if left_out else []
    return "\n".join([title, "", *shown, *more])
