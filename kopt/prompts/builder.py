"""The prompt of a request, from sections: what never changes first, what changes last.

A server keeps the start of a prompt that it has read before (prefix caching). The system message is
the same for all prompts of a target and of one way to judge; the user message starts with what is
the same for all of a problem. A further section (memory, history, a tool's manual) is a function
here and a template.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from kopt.cutlass.constraint_text import fitting
from kopt.ports import Message, WriteRequest
from kopt.prompts.budget import (
    BUDGET,
    CHANGING_GIVE_WAY,
    STABLE_GIVE_WAY,
    SYSTEM_GIVE_WAY,
    Budget,
    fitted,
    stable_tokens,
)
from kopt.prompts.checks_text import checks_section, refused_section
from kopt.prompts.excerpts import CUT, source_block
from kopt.prompts.finding_text import findings_text
from kopt.prompts.hardware_text import device_text
from kopt.prompts.history_text import history_section
from kopt.prompts.memory_text import guidelines_section, memory_section
from kopt.prompts.policy_text import policy_text
from kopt.prompts.profile_text import apart_from_the_race, beside_the_result, profile_text
from kopt.prompts.survey_text import survey_text
from kopt.prompts.target_text import languages_text
from kopt.prompts.task_text import task_section
from kopt.prompts.templates import filled
from kopt.prompts.tokens import MESSAGE, WORD, estimated_tokens
from kopt.prompts.verdict_text import verdict_text

AnswerForm = Literal["fenced", "json", "file"]
"""In what form an answer is asked for: labels and a fenced block, one JSON object, or labels and a
block for each of as many candidates as are wanted."""
Section = Callable[[WriteRequest, Budget], str]
"""Gives one section of a prompt; empty leaves it out."""


def build(
    request: WriteRequest, *, budget: Budget = BUDGET, form: AnswerForm = "fenced"
) -> tuple[Message, ...]:
    """Return the messages of a request: equal requests give equal ones.

    Args:
        request: what is asked for.
        budget: bounds of the sections and of the whole.
        form: of the answer; the same for all prompts of a search, as it is part of what they share.
    """
    return assembled(
        request,
        budget=budget,
        system=(*SYSTEM, _ANSWERS[form]),
        changing=(*CHANGING, _CLOSINGS[form]),
    )


def assembled(
    request: WriteRequest,
    *,
    budget: Budget,
    system: tuple[Section, ...],
    changing: tuple[Section, ...],
) -> tuple[Message, ...]:
    """Return the messages of given sections, within a budget; the problem's stand between them.

    Args:
        request: what is asked for.
        budget: bounds of the sections and of the whole.
        system: of the system message.
        changing: of the user message, after what is the same for all of a problem.
    """
    head, stable, budget = _stable(request, budget, system)
    left = budget.tokens - estimated_tokens(f"{head}\n\n{stable}") - 2 * MESSAGE
    budget = fitted(
        budget,
        lambda tried: _joined(changing, request, tried),
        tokens=left,
        give_way=CHANGING_GIVE_WAY,
    )
    rest = _joined(changing, request, budget)
    return (Message("system", head), Message("user", f"{stable}\n\n{rest}"))


def stable_part(
    request: WriteRequest, *, budget: Budget = BUDGET, form: AnswerForm = "fenced"
) -> tuple[Message, ...]:
    """Return what all prompts of the request's problem and target begin with."""
    system, stable, _ = _stable(request, budget, (*SYSTEM, _ANSWERS[form]))
    return (Message("system", system), Message("user", stable))


def reference_is_cut(messages: Sequence[Message]) -> bool:
    """Return whether a prompt leaves out a part of its reference, and says so."""
    beginning = filled("reference", source=CUT, cast="")
    return any(text.startswith(beginning) for _, text in messages)


def _stable(
    request: WriteRequest, budget: Budget, sections: tuple[Section, ...]
) -> tuple[str, str, Budget]:
    """Return the system message, the user message's beginning, and the budget they were cut to."""
    budget = fitted(
        budget,
        lambda tried: _joined(sections, request, tried),
        tokens=min(budget.system_tokens, budget.tokens // 2),
        give_way=SYSTEM_GIVE_WAY,
    )
    system = _joined(sections, request, budget)
    room = stable_tokens(budget, left=budget.tokens - estimated_tokens(system))
    budget = fitted(
        replace(budget, reference=min(budget.reference, room * WORD)),
        lambda tried: _joined(STABLE, request, tried),
        tokens=room,
        give_way=STABLE_GIVE_WAY,
    )
    return system, _joined(STABLE, request, budget), budget


def _joined(sections: tuple[Section, ...], request: WriteRequest, budget: Budget) -> str:
    texts = (section(request, budget) for section in sections)
    return "\n\n".join(filter(None, texts))


def _fixed(name: str) -> Section:
    return lambda request, budget: filled(name)


def _device(request: WriteRequest, budget: Budget) -> str:
    return device_text(request.target)


def _languages(request: WriteRequest, budget: Budget) -> str:
    return languages_text(request.target, api_characters=budget.apis)


def _manual(request: WriteRequest, budget: Budget) -> str:
    return fitting(request.manual, max_characters=budget.manual)


def _policy(request: WriteRequest, budget: Budget) -> str:
    terms = request.terms
    policy = policy_text(terms.ladder, device=request.target.label)
    track = "\n\n" + filled("own_kernels") if terms.track == "kernels" else ""
    return policy + track


def _answer(request: WriteRequest, budget: Budget) -> str:
    return filled("answer", language=_named_languages(request))


def _answer_file(request: WriteRequest, budget: Budget) -> str:
    return filled("answer_file", language=_named_languages(request))


def _named_languages(request: WriteRequest) -> str:
    languages = request.target.languages
    return languages[0] if len(languages) == 1 else f"(one of {', '.join(languages)})"


def _closing_file(request: WriteRequest, budget: Budget) -> str:
    number = request.expansion.num_candidates
    several = f"Answer with up to {number} candidates, each a different idea: for each"
    return filled("closing_file", wanted="Answer with one candidate:" if number == 1 else several)


def _answer_json(request: WriteRequest, budget: Budget) -> str:
    return filled("answer_json", languages=", ".join(request.target.languages))


def _reference(request: WriteRequest, budget: Budget) -> str:
    problem = request.problem
    cast = ""
    if problem.dtype is not None:
        cast = (
            f"\nIts floating-point parameters, buffers and inputs are cast to {problem.dtype}, "
            "and so are yours."
        )
    source = source_block(problem.source, max_characters=budget.reference)
    return filled("reference", source=source, cast=cast)


def _survey(request: WriteRequest, budget: Budget) -> str:
    return survey_text(request.survey, device=request.target.name)


def _version(request: WriteRequest, budget: Budget) -> str:
    if request.parent is None:
        given = request.problem.given
        block = source_block(given, max_characters=budget.version)
        return filled("given", source=block) if given else ""
    candidate = request.parent.candidate
    return filled(
        "version",
        language=candidate.language,
        strategy=f" Its strategy: {candidate.strategy}" if candidate.strategy else "",
        source=source_block(candidate.source, max_characters=budget.version),
    )


def _result(request: WriteRequest, budget: Budget) -> str:
    if request.parent is None:
        return ""
    text = verdict_text(
        request.parent.evaluation,
        log_characters=budget.log,
        with_owners=not _findings(request, budget),
    )
    return filled("result", result=text)


def _findings(request: WriteRequest, budget: Budget) -> str:
    parent = request.parent
    if parent is None:
        return ""
    if parent.evidence is not None:
        text = profile_text(
            beside_the_result(parent), telling=request.telling, max_characters=budget.profile
        )
        if text:
            text = f"{apart_from_the_race(parent.evidence)}{text}"
    else:
        text = findings_text(parent.findings, max_characters=budget.findings)
    return filled("findings", findings=text) if text else ""


CONTRACT: Section = _fixed("contract")
"""What a version has to be."""
WORKPLACE: tuple[Section, ...] = (
    _device,
    CONTRACT,
    _languages,
    _manual,
    checks_section,
    _policy,
    refused_section,
    guidelines_section,
)
"""What whoever writes has to know, whatever their role."""
SYSTEM: tuple[Section, ...] = (_fixed("role"), *WORKPLACE)
"""The same for all prompts of a target and of one way to judge; the form of the answer follows."""
STABLE: tuple[Section, ...] = (_reference, _survey)
"""The same for all prompts of a problem."""
VERSION: tuple[Section, ...] = (_version, _result)
"""The version that is expanded, and what became of it."""
MATERIAL: tuple[Section, ...] = (
    *VERSION,
    memory_section,
    _findings,
    history_section,
)
"""All that is known of it."""
CHANGING: tuple[Section, ...] = (task_section, *MATERIAL)
"""Different from prompt to prompt; a closing line follows."""
FENCED: tuple[Section, Section] = (_answer, _fixed("closing"))
"""How an answer in labels and a fenced block is asked for: in the system message, and at the end.
"""
_ANSWERS: dict[AnswerForm, Section] = {
    "fenced": _answer,
    "json": _answer_json,
    "file": _answer_file,
}
_CLOSINGS: dict[AnswerForm, Section] = {
    "fenced": _fixed("closing"),
    "json": _fixed("closing_json"),
    "file": _closing_file,
}
