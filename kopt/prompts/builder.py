"""The prompt of a request, from sections: what never changes first, what changes last.

A server keeps the start of a prompt that it has read before (prefix caching). The system message is
the same for all prompts of a target and of one way to judge; the user message starts with what is
the same for all of a problem. A further section (memory, history, a tool's manual) is a function
here and a template.
"""

from __future__ import annotations

from collections.abc import Callable
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
)
from kopt.prompts.excerpts import fenced, middle_out
from kopt.prompts.finding_text import findings_text
from kopt.prompts.hardware_text import device_text
from kopt.prompts.history_text import history_section
from kopt.prompts.memory_text import guidelines_section, memory_section
from kopt.prompts.policy_text import limits_text, policy_text
from kopt.prompts.profile_text import beside_the_result, profile_text
from kopt.prompts.survey_text import survey_text
from kopt.prompts.target_text import languages_text
from kopt.prompts.templates import filled
from kopt.prompts.tokens import MESSAGE, estimated_tokens
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
    budget = fitted(
        budget,
        lambda tried: _joined(STABLE, request, tried),
        tokens=(budget.tokens - estimated_tokens(system)) // 2,
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


def _checks(request: WriteRequest, budget: Budget) -> str:
    return filled("checks", limits=limits_text(request.terms.deadlines))


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
    source = middle_out(problem.source, max_characters=budget.reference)
    return filled("reference", source=fenced(source, info="python"), cast=cast)


def _survey(request: WriteRequest, budget: Budget) -> str:
    return survey_text(request.survey, device=request.target.name)


def _task(request: WriteRequest, budget: Budget) -> str:
    expansion = request.expansion
    again = ""
    if expansion.first_child:
        number = expansion.first_child
        versions, them, they_are, theirs = f"{number} versions were", "them", "they are", "theirs"
        if number == 1:
            versions, them, they_are, theirs = "One version was", "it", "it is", "that one's"
        known, than = f"{they_are} not known here", ""
        if request.history.siblings:
            known, than = f"what is known of {them} stands below", f" than {theirs}, and"
        again = (
            f"\n{versions} asked for from here before; {known}. Take another idea{than} than the "
            "first that comes to mind."
        )
    return filled(expansion.mode, again=again)


def _version(request: WriteRequest, budget: Budget) -> str:
    if request.parent is None:
        given = middle_out(request.problem.given, max_characters=budget.version)
        return filled("given", source=fenced(given, info="python")) if given else ""
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
    _checks,
    _policy,
    _fixed("refused"),
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
CHANGING: tuple[Section, ...] = (_task, *MATERIAL)
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
