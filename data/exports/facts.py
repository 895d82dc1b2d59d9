"""Columns that every exported row has beside what a trainer reads: where it comes from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kopt.data.corpus.gathering import GatheredSearch
from kopt.data.corpus.run_texts import RunTexts
from kopt.data.corpus.trial_row import TrialRow

FACTS: tuple[pa.Field[Any], ...] = (
    pa.field("run", pa.string()),
    pa.field("search", pa.string()),
    pa.field("problem", pa.string()),
    pa.field("problem_name", pa.string()),
    pa.field("problem_family", pa.string()),
    pa.field("problem_licence", pa.string()),
    pa.field("mode", pa.string()),
    pa.field("depth", pa.int64()),
    pa.field("prompt_origin", pa.string()),
)
"""`prompt_origin` is `sent`, or `rebuilt` where nobody was asked in words."""

JUDGED: tuple[pa.Field[Any], ...] = (
    pa.field("node", pa.int64()),
    pa.field("candidate", pa.string()),
    pa.field("language", pa.string()),
    pa.field("programmer", pa.string()),
    pa.field("verdict", pa.string()),
    pa.field("ladder", pa.string()),
    pa.field("track", pa.string()),
    pa.field("device", pa.string()),
    pa.field("speedup", pa.float64()),
    pa.field("speedup_lo", pa.float64()),
    pa.field("speedup_hi", pa.float64()),
    pa.field("reward", pa.float64()),
)
"""Of one candidate; null where it was not judged, and speed-ups (baseline ÷ candidate, 95 %) unless
it is correct."""


def facts_of(
    search: GatheredSearch, row: TrialRow, *, texts: RunTexts, origin: str
) -> dict[str, Any]:
    """Return the values of FACTS."""
    started = search.started
    problem = texts.problem(started["problem"])
    return {
        "run": texts.name,
        "search": search.name,
        "problem": started["problem"],
        "problem_name": started["problem_name"],
        "problem_family": "" if problem is None else problem.family,
        "problem_licence": "" if problem is None else problem.licence,
        "mode": row.expansion["mode"],
        "depth": len(row.lineage) + 1,
        "prompt_origin": origin,
    }


def judged_of(row: TrialRow) -> dict[str, Any]:
    """Return the values of JUDGED."""
    made, judged = row.made, row.judged
    low, high = (None, None) if judged is None else judged.speedup_ci or (None, None)
    return {
        "node": row.node,
        "candidate": row.candidate,
        "language": None if made is None else made["language"],
        "programmer": None if made is None else made["programmer"],
        "verdict": None if judged is None else judged.kind,
        "ladder": None if judged is None else judged.ladder,
        "track": None if judged is None else judged.track,
        "device": None if judged is None else judged.device,
        "speedup": None if judged is None else judged.speedup,
        "speedup_lo": low,
        "speedup_hi": high,
        "reward": row.reward,
    }
