"""The profiling agent's prompt and answer (KernelPro §3.2.3): a profile in, a ProfileAnalysis out.

The prompt has the arm's own text, in the paper's order. The answer is a model's: it is read within
bounds, and what cannot be read is a fault in one line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, cast, get_args

from kopt.evidence import BottleneckClass
from kopt.finding import SEVERITIES, Severity
from kopt.ports import AnalysisRequest, Message
from kopt.profile_analysis import ProfileAnalysis
from kopt.prompts.budget import BUDGET, Budget
from kopt.prompts.excerpts import short_line, source_block
from kopt.prompts.hardware_text import device_text
from kopt.prompts.json_objects import json_objects, no_object
from kopt.prompts.profile_text import MAX_STEP, MAX_STEPS, profile_text
from kopt.prompts.templates import filled

MAX_REFERENCE = 32_000
"""Characters; a profile is read beside it."""
_CLASSES: tuple[BottleneckClass, ...] = get_args(BottleneckClass)
_WORD = re.compile(r"[a-z]+")


class AnalysisReading(NamedTuple):
    """What an answer came to."""

    analysis: ProfileAnalysis | None
    fault: str
    """Why there is none, in one line; empty where there is one."""


def build_analysis(request: AnalysisRequest, *, budget: Budget = BUDGET) -> tuple[Message, ...]:
    """Return the messages that ask for an analysis: equal requests give equal ones."""
    attempt = replace(request.attempt, analysis=None)
    telling = replace(request.telling, orchestration="proactive")
    reference = source_block(request.problem.source, max_characters=MAX_REFERENCE)
    version = source_block(attempt.candidate.source, max_characters=budget.version)
    profile = profile_text(attempt, telling=telling, max_characters=budget.profile)
    user = (
        filled("reference", source=reference, cast=""),
        filled(
            "version",
            language=attempt.candidate.language,
            strategy="",
            source=version,
        ),
        filled("findings", findings=profile),
        filled("analysis", most=MAX_STEPS),
    )
    system = "\n\n".join((filled("analyst"), device_text(request.target)))
    return (Message("system", system), Message("user", "\n\n".join(user)))


def read_analysis(text: str) -> AnalysisReading:
    """Return the analysis of an answer: the first JSON object in it that is one."""
    fault = no_object(text)
    for value in json_objects(text):
        analysis, fault = _analysis({str(key).lower(): each for key, each in value.items()})
        if analysis is not None:
            return AnalysisReading(analysis, "")
    return AnalysisReading(None, f"no analysis: {fault}")


def _analysis(fields: Mapping[str, object]) -> tuple[ProfileAnalysis | None, str]:
    bottleneck = _first_of(_CLASSES, fields.get("bottleneck"))
    if bottleneck is None:
        return None, f"`bottleneck` names none of {', '.join(_CLASSES)}"
    severity = _first_of(SEVERITIES, fields.get("severity"))
    if severity is None:
        return None, f"`severity` names none of {', '.join(SEVERITIES)}"
    listed = fields.get("steps", fields.get("recommendations"))
    steps = tuple(filter(None, map(_step, listed if isinstance(listed, list) else ())))
    if not steps:
        return None, "`steps` lists none"
    summary = fields.get("summary")
    return (
        ProfileAnalysis(
            bottleneck=cast("BottleneckClass", bottleneck),
            severity=cast("Severity", severity),
            steps=steps[:MAX_STEPS],
            summary=_line(summary) if isinstance(summary, str) else "",
        ),
        "",
    )


def _first_of(known: tuple[str, ...], value: object) -> str | None:
    """`Memory-bound` names `memory`."""
    words = _WORD.findall(value.lower()) if isinstance(value, str) else []
    return next((word for word in words if word in known), None)


def _step(value: object) -> str:
    if isinstance(value, Mapping):  # {"step": …, "expected": …}: the first text counts
        value = next((each for each in value.values() if isinstance(each, str)), "")
    return _line(value) if isinstance(value, str) else ""


def _line(text: str) -> str:
    return short_line(" ".join(text.split()), max_characters=MAX_STEP)
