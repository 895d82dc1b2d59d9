"""Lessons by rule: what an iteration certainly shows, for searches whose memory asks no model.

Each sentence is a fold of verdicts, tool calls and faults; nothing is guessed at. The sections are
KernelPro's (§3.4).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kopt.memory.entry import MemoryEntry, entry_of
from kopt.memory.iteration import Iteration
from kopt.memory.tried import Tried
from kopt.verdict import VerdictKind

RECURRING = 3
"""Versions that fail in one way before that is a lesson of its own."""
MAX_SHOWN = 160
"""Characters of a tool's arguments or of its result's first line."""
_PATHS = ("path", "file", "directory")
"""Names of arguments that name a source."""
_FAILED: dict[VerdictKind, str] = {
    "compile_failed": "does not compile",
    "crashed": "crashes",
    "timed_out": "does not end in time",
    "incorrect": "is wrong",
    "cheated": "counts as a cheat",
    "correct": "is right",
}


def lessons_of(iteration: Iteration, *, before: Sequence[Tried] = ()) -> tuple[MemoryEntry, ...]:
    """Return what an iteration shows.

    Args:
        iteration: that is over.
        before: what its search had tried before it.
    """
    return (
        *_calls(iteration.calls),
        *(entry for each in iteration.tried for entry in _outcome(each)),
        *(
            entry_of("errors_corrections", f"An answer held no candidate: {fault}")
            for fault in dict.fromkeys(iteration.faults)
        ),
        *_recurring(iteration.tried, before),
    )


def _outcome(tried: Tried) -> Iterator[MemoryEntry]:
    what = tried.strategy.rstrip(" .") or f"a version in {tried.language} without a stated strategy"
    if tried.kind != "correct":
        yield entry_of("errors_corrections", f"{what}: {_FAILED[tried.kind]} ({tried.reason})")
        return
    if tried.is_mended:
        yield entry_of(
            "errors_corrections",
            f"what failed before ({tried.parent_kind}: {tried.parent_reason}) was mended by: "
            f"{what}",
        )
    figures = factors(tried)
    if tried.improved:
        yield entry_of("successful_patterns", f"{what}: {figures}")
    elif tried.regressed:
        yield entry_of("errors_corrections", f"{what}: right, but slower ({figures})")
    else:
        yield entry_of("learnings", f"{what}: no difference beyond the noise ({figures})")


def factors(tried: Tried) -> str:
    """Return by how much a correct candidate is faster, against what; empty for another."""
    if tried.speedup is None or tried.gain is None:
        return ""
    over_baseline = f"{tried.speedup:.3g}x the baseline's speed"
    if tried.parent_kind == "correct":
        return f"{tried.gain:.3g}x the speed of what it was made from, {over_baseline}"
    return over_baseline


def _recurring(now: Sequence[Tried], before: Sequence[Tried]) -> Iterator[MemoryEntry]:
    """What failed alike often enough by now, once for each way; the memory keeps one of a text."""
    counts = Counter(_way(each) for each in before if each.kind != "correct")
    for tried in now:
        if tried.kind == "correct":
            continue
        way = _way(tried)
        counts[way] += 1
        if counts[way] == RECURRING:
            yield entry_of(
                "learnings",
                f"{RECURRING} versions failed alike: {tried.kind} at `{way[1]}`; "
                "what they have in common is to be left or mended first",
            )


def _way(tried: Tried) -> tuple[str, str]:
    """In which way a candidate failed: its kind, and the check or stage."""
    return tried.kind, tried.reason.partition(": ")[0].partition("#")[0]


def _calls(calls: Sequence[Mapping[str, Any]]) -> Iterator[MemoryEntry]:
    """Calls with arguments looked something up; one without asked for what the prompt may hold."""
    for call in calls:
        arguments = _arguments(call.get("arguments"))
        if not arguments:
            continue
        shown = ", ".join(f"{key}={value}" for key, value in arguments.items())[:MAX_SHOWN]
        first = str(call.get("result", "")).strip().partition("\n")[0][:MAX_SHOWN]
        yield entry_of("search_findings", f"{call.get('name', '')}({shown}): {first}")
        for key in _PATHS:
            if isinstance(arguments.get(key), str):
                yield entry_of("key_files", f"{arguments[key]} (read by {call.get('name', '')})")


def _arguments(value: object) -> Mapping[str, object]:
    """Return a call's arguments; empty where they cannot be read."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}
