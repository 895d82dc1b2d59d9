"""The history in words: how the version came about, and what was tried from the same place."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.memory.history import History
from kopt.memory.tried import Tried
from kopt.ports import WriteRequest
from kopt.prompts.budget import Budget
from kopt.prompts.excerpts import short_line
from kopt.prompts.templates import filled
from kopt.prompts.verdict_text import in_us

MAX_STRATEGY = 300
"""Characters of a strategy in a line."""
MAX_REASON = 120
"""Characters of why a candidate failed."""


def history_section(request: WriteRequest, budget: Budget) -> str:
    """Return the section of a prompt; empty where nothing came before."""
    text = history_text(request.history, max_characters=budget.history)
    return filled("history", history=text) if text else ""


def history_text(history: History, *, max_characters: int) -> str:
    """Return lineage and siblings, a line each; the oldest give way, visibly.

    Args:
        history: of the place.
        max_characters: bound of the whole.
    """
    lineage = [f"- {outcome_line(each)}" for each in history.lineage]
    siblings = [f"- {outcome_line(each)}" for each in history.siblings]
    half = max_characters // 2
    # What one list does not need, the other may have.
    spare = max(0, half - sum(len(line) + 1 for line in lineage))
    below = _latest(siblings, history.earlier, max_characters=half + spare)
    above = _latest(
        lineage,
        history.older,
        max_characters=max_characters - sum(len(line) + 1 for line in below),
    )
    parts = []
    if above:
        parts.append("\n".join(["What it came from, the eldest first:", "", *above]))
    if below:
        parts.append("\n".join(["Tried from here before, in this order:", "", *below]))
    return "\n\n".join(parts)


def outcome_line(tried: Tried) -> str:
    """Return what was meant and what became of it, in one line."""
    what = short_line(tried.strategy.rstrip(" ."), max_characters=MAX_STRATEGY)
    what = what or "(no strategy stated)"
    if tried.speedup is None:
        reason = short_line(tried.reason, max_characters=MAX_REASON)
        return f"{what} ({tried.language}): {tried.kind.replace('_', ' ')}: {reason}"
    gain = ""
    if tried.parent_kind == "correct" and tried.gain is not None:
        gain = f", {tried.gain:.3g}x what it was made from"
    time = "" if tried.time_us is None else f"{in_us(tried.time_us)} us, "
    # Of the race that gave the factor: other races find other times.
    race = "" if tried.baseline_us is None else f" ({in_us(tried.baseline_us)} us in that race)"
    right = f"right, {time}{tried.speedup:.3g}x the baseline{race}{gain}"
    return f"{what} ({tried.language}): {right}"


def _latest(lines: Sequence[str], before: int, *, max_characters: int) -> list[str]:
    """Return the last lines that fit, the very last always, under a count of those before."""
    kept: list[str] = []
    used = 0
    for line in reversed(lines):
        used += len(line) + 1
        if kept and used > max_characters:
            break
        kept.insert(0, line)
    left_out = before + len(lines) - len(kept)
    return [f"- … {left_out} earlier left out …", *kept] if left_out else kept
