"""The prompt of a request, from sections: what never changes first, what changes last.

A server keeps the start of a prompt that it has read before (prefix caching). The system message is
the same for all prompts of a target and of one way to judge; the user message starts with what is
the same for all of a problem. A further section (memory, history, a tool's manual) is a function
here and a template.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kopt.ports import Message, WriteRequest
from kopt.prompts.excerpts import fenced, middle_out
from kopt.prompts.finding_text import findings_text
from kopt.prompts.policy_text import policy_text
from kopt.prompts.profile_text import profile_text
from kopt.prompts.target_text import device_text, languages_text
from kopt.prompts.templates import filled
from kopt.prompts.verdict_text import verdict_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Most characters of each section that has no size of its own; about four make a token."""

    reference: int = 32_000
    version: int = 48_000
    log: int = 4_000
    findings: int = 8_000
    profile: int = 12_000


BUDGET = Budget()

Section = Callable[[WriteRequest, Budget], str]
"""Gives one section of a prompt; empty leaves it out."""


def build(request: WriteRequest, *, budget: Budget = BUDGET) -> tuple[Message, ...]:
    """Return the messages of a request: equal requests give equal ones.

    Args:
        request: what is asked for.
        budget: bounds of the sections.
    """
    return (
        Message("system", _joined(SYSTEM, request, budget)),
        Message("user", _joined((*STABLE, *CHANGING), request, budget)),
    )


def stable_part(request: WriteRequest, *, budget: Budget = BUDGET) -> tuple[Message, ...]:
    """Return what all prompts of the request's problem and target begin with."""
    return (
        Message("system", _joined(SYSTEM, request, budget)),
        Message("user", _joined(STABLE, request, budget)),
    )


def _joined(sections: tuple[Section, ...], request: WriteRequest, budget: Budget) -> str:
    texts = (section(request, budget) for section in sections)
    return "\n\n".join(filter(None, texts))


def _fixed(name: str) -> Section:
    return lambda request, budget: filled(name)


def _device(request: WriteRequest, budget: Budget) -> str:
    return device_text(request.target)


def _languages(request: WriteRequest, budget: Budget) -> str:
    return languages_text(request.target)


def _policy(request: WriteRequest, budget: Budget) -> str:
    terms = request.terms
    policy = policy_text(terms.ladder, device=request.target.label)
    track = "\n\n" + filled("own_kernels") if terms.track == "kernels" else ""
    return policy + track


def _answer(request: WriteRequest, budget: Budget) -> str:
    languages = request.target.languages
    named = languages[0] if len(languages) == 1 else f"(one of {', '.join(languages)})"
    return filled("answer", language=named)


def _reference(request: WriteRequest, budget: Budget) -> str:
    problem = request.problem
    cast = ""
    if problem.dtype is not None:
        cast = (
            f"\nIts floating-point parameters, buffers and inputs are cast to {problem.dtype}, "
            "and so are yours."
        )
    source = middle_out(problem.source, max_characters=budget.reference)
    return filled("reference", source=fenced(source, info="python"), cast=cast)


def _task(request: WriteRequest, budget: Budget) -> str:
    expansion = request.expansion
    again = ""
    if expansion.first_child:
        number = expansion.first_child
        versions = "One version was" if number == 1 else f"{number} versions were"
        again = f"\n{versions} asked for from here before; take another way than the nearest one."
    return filled(expansion.mode, again=again)


def _version(request: WriteRequest, budget: Budget) -> str:
    if request.parent is None:
        return ""
    candidate = request.parent.candidate
    source = middle_out(candidate.source, max_characters=budget.version)
    return filled(
        "version",
        language=candidate.language,
        strategy=f" Its strategy: {candidate.strategy}" if candidate.strategy else "",
        source=fenced(source, info="python"),
    )


def _result(request: WriteRequest, budget: Budget) -> str:
    if request.parent is None:
        return ""
    text = verdict_text(request.parent.evaluation, log_characters=budget.log)
    return filled("result", result=text)


def _findings(request: WriteRequest, budget: Budget) -> str:
    parent = request.parent
    if parent is None:
        return ""
    if parent.evidence is not None:
        text = profile_text(parent, telling=request.telling, max_characters=budget.profile)
    else:
        text = findings_text(parent.findings, max_characters=budget.findings)
    return filled("findings", findings=text) if text else ""


SYSTEM: tuple[Section, ...] = (
    _fixed("role"),
    _device,
    _fixed("contract"),
    _languages,
    _fixed("checks"),
    _policy,
    _fixed("refused"),
    _answer,
)
"""The same for all prompts of a target and of one way to judge."""
STABLE: tuple[Section, ...] = (_reference,)
"""The same for all prompts of a problem."""
CHANGING: tuple[Section, ...] = (_task, _version, _result, _findings, _fixed("closing"))
"""Different from prompt to prompt."""
