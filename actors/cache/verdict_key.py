"""Verdicts as values of a store: by what they are found, and which are kept.

A verdict is kept from one run to the next only where judging the same text again would come to the
same. What may have been the host's doing is not kept: a candidate that ran out of time or crashed
(a busy host, memory taken by others, a device that fell over), a build or an import that says that
the host had no memory or room, an accusation that rests on clocks which the host may have held up,
and a speed-up that a busy host left open. Judged again, they cost what they cost; kept, they would
be wrong for good. What is kept stands as measured, with its interval.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from kopt.actors.cache.layout import layout_free
from kopt.actors.config import EvaluateConfig
from kopt.candidate import Candidate
from kopt.evaluation import CACHED_CHECK, Check, Evaluation, from_json, to_json
from kopt.identity import canonical_json, content_id
from kopt.ports import Target
from kopt.problem import Problem
from kopt.verdict import Cheated, CompileFailed, Correct, Crashed, Incorrect, TimedOut

_VERSION = 1
_NO_PART = frozenset({"secret", "cache", "languages"})
"""Fields of EvaluateConfig that are no part of a key: which hidden inputs were drawn, where an
answer may come from, and where further languages are defined (the target names those there are).
Every other one is, those of later versions included."""
_HOST = re.compile(
    r"\b(?:Killed|SIGKILL|MemoryError|bad_alloc|out of memory|Out of memory|Cannot allocate memory"
    r"|No space left|Disk quota exceeded|Too many open files|Resource temporarily unavailable"
    r"|Read-only file system|Input/output error|Stale file handle)\b"
)
"""In the words of a failure: it may have been the host's. Said by a candidate itself, it is judged
again, no more."""


WIDEST = 10.0
"""Of a speed-up's interval that is kept, high end ÷ low end: a calm host's is below 1.3, and what
says nothing but that the host was busy is no result to stand for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A verdict that was kept."""

    evaluation: Evaluation
    made_s: float
    """When it was reached, in seconds since the epoch."""


def text_key(problem: Problem, candidate: Candidate) -> str:
    """Return what names a candidate within a run, whatever its layout."""
    fields = {
        "problem": problem.problem_id,
        "degenerate": bool(problem.degenerate),
        "language": candidate.language,
        "text": layout_free(candidate),
    }
    return content_id("candidate text", _VERSION, fields)


def protocol_key(config: EvaluateConfig, *, target: Target, facts: Sequence[dict[str, str]]) -> str:
    """Return what names the way in which a run judges: its protocol, device and hosts."""
    judged = {
        name: value
        for name, value in config.model_dump(mode="json").items()
        if name not in _NO_PART
    }
    fields = {
        "evaluate": judged,
        "target": [target.device, target.name, target.arch, list(target.languages)],
        "hosts": list(facts),
    }
    return content_id("protocol", _VERSION, fields)


def verdict_key(text: str, *, protocol: str) -> str:
    """Return the key of a verdict in the store."""
    return content_id("verdict", _VERSION, {"text": text, "protocol": protocol})


def may_keep(evaluation: Evaluation) -> bool:
    """Return whether a verdict is kept beyond its run (see the module's docstring)."""
    verdict = evaluation.verdict
    was_timed = any(gate.name == "performance" for gate in evaluation.gates)
    match verdict:
        case Correct(timing=timing):
            low, high = timing.speedup_ci
            # A baseline that failed makes the speed-up over the others: it may not fail again.
            return high <= WIDEST * low and all(
                check.passed for check in evaluation.checks if check.name.startswith("baseline:")
            )
        case Incorrect():
            return True
        case Cheated():
            return not was_timed
        case CompileFailed():
            return _HOST.search(verdict.log) is None
        case Crashed() | TimedOut():
            return False
        case _:
            assert_never(verdict)


def to_value(evaluation: Evaluation, *, made_s: float) -> bytes:
    """Return the bytes that are kept of a verdict."""
    return canonical_json({"made_s": made_s, "eval": to_json(evaluation)}).encode()


def from_value(value: bytes) -> Found:
    """Return the verdict of such bytes.

    Raises:
        ValueError, KeyError, TypeError: they are not what this version of kopt writes.
    """
    record = json.loads(value)
    return Found(evaluation=from_json(record["eval"]), made_s=float(record["made_s"]))


def handed_on(
    evaluation: Evaluation, *, candidate: Candidate, judged_when: str, waited_s: float
) -> Evaluation:
    """Return an evaluation as that of a candidate with the same text, saying that it is so.

    Args:
        evaluation: of the one that was judged.
        candidate: that is asked about.
        judged_when: a time of day, or `in this run`.
        waited_s: for the answer.
    """
    asked = candidate.candidate_id
    detail = f"judged {judged_when}"
    if evaluation.candidate != asked:
        detail += (
            f" as candidate {evaluation.candidate[:12]}, which differs in layout alone: "
            "line numbers are its"
        )
    checks = tuple(check for check in evaluation.checks if check.name != CACHED_CHECK)
    return replace(
        evaluation,
        candidate=asked,
        checks=(*checks, Check(name=CACHED_CHECK, passed=True, detail=detail)),
        timeline_s={CACHED_CHECK: waited_s},
    )
