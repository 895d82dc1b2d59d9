"""Those who write, at work: a program, held against the rules in the same conversation (App. A.2).

A program that breaks a rule, or an answer without one, goes back to its author a few times. What
comes last is handed in as it is: its verdict counts, and a search that mends what failed goes on
with the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kopt.actors.apis.reader import MAX_NAMES
from kopt.actors.programmers.agents.idea import Idea
from kopt.agent_call import AUTHORS, Author, PastCall
from kopt.candidate import Candidate
from kopt.edit_check import edit_faults
from kopt.ports import Completion, Message, WriteRequest
from kopt.prompts.agent_author import (
    author_prompt,
    no_module_message,
    rules_message,
    told_apart,
    verdict_message,
)
from kopt.prompts.agent_conversation import bounded, said
from kopt.prompts.agent_plan import Plan
from kopt.prompts.answer import read_answer

CUT = ("length", "max_tokens")
"""How servers say that an answer ended at the token limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What an idea came to."""

    candidate: Candidate | None
    completion: Completion
    """The answer that holds it, or the last one; its usage is that of all calls of the idea."""
    messages: tuple[Message, ...] = ()
    """The conversation that it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What an author works under."""

    author: Author
    tokens: int
    """Of a conversation."""
    resubmissions: int
    programmer: str
    """Whom candidates name."""


async def write_program(
    idea: Idea,
    messages: Sequence[Message],
    *,
    desk: Desk,
    strategy: str = "",
    version: str | None = None,
) -> Written:
    """Return what an author writes in a conversation.

    Args:
        idea: that it is for.
        messages: the conversation, the last message the one to be answered.
        desk: the author and its bounds.
        strategy: that labels the candidate; empty: the author's own words do.
        version: whose kernels keep their parameters; None: no version's.

    Raises:
        Whatever whoever answers raises, and StoreError.
    """
    request, talk = idea.request, tuple(messages)
    handed_in: Written | None = None
    heard = Completion(text="")
    for left in range(desk.resubmissions, -1, -1):
        heard = await idea.ask(desk.author, talk)
        if heard.fault:
            break
        reading = read_answer(heard.text, request=request, programmer=desk.programmer)
        heard = replace(heard, fault=_fault(reading.fault, heard))
        if reading.candidates:
            (written,) = reading.candidates
            candidate = replace(written, strategy=strategy or written.strategy)
            handed_in = Written(candidate=candidate, completion=heard, messages=talk)
            faults = _faults(candidate, request, version=version)
            if not faults:
                break
            then = rules_message(faults)
        else:
            then = no_module_message(heard.fault)
        if left:
            talk = bounded(said(talk, answer=heard.text, then=then), tokens=desk.tokens)
    if handed_in is None:
        handed_in = Written(candidate=None, completion=heard, messages=talk)
    return replace(handed_in, completion=replace(handed_in.completion, usage=idea.usage))


async def carry_out(idea: Idea, plan: Plan, *, desk: Desk) -> Written:
    """Return what an executor makes of a plan."""
    request = idea.request
    messages = author_prompt(
        request, author=desk.author, plan=plan, idea=idea.number, tokens=desk.tokens
    )
    parent = request.parent
    return await write_program(
        idea,
        messages,
        desk=desk,
        strategy=plan.direction,
        version=None if parent is None else parent.candidate.source,
    )


async def mend(idea: Idea, past: Sequence[PastCall], *, desk: Desk) -> Written:
    """Return what becomes of a version that failed: its author's conversation goes on.

    Args:
        idea: of the failed version.
        past: authors' calls in the expansion that made it; of a version that no agent wrote, none.
        desk: of the executor; it takes a role that began the conversation as its own.
    """
    request, parent = idea.request, idea.request.parent
    assert parent is not None, "what is mended is there"
    strategy = parent.candidate.strategy
    call = _call_of(parent.candidate, past, request, programmer=desk.programmer)
    if call is None:
        messages = author_prompt(
            request,
            author=desk.author,
            plan=told_apart(parent),
            idea=idea.number,
            tokens=desk.tokens,
        )
        return await write_program(idea, messages, desk=desk, strategy=strategy)
    then = verdict_message(parent.evaluation, idea=idea.number)
    messages = bounded(said(call.messages, answer=call.text, then=then), tokens=desk.tokens)
    author = next((each for each in AUTHORS if each == call.place.agent), desk.author)
    desk = replace(desk, author=author)
    return await write_program(idea, messages, desk=desk, strategy=strategy)


def _call_of(
    candidate: Candidate, past: Sequence[PastCall], request: WriteRequest, *, programmer: str
) -> PastCall | None:
    """Return the call whose answer is a candidate; the last of several."""
    # Read as it was then: the candidate repeats nothing.
    fresh = replace(request, parent=None)
    for call in reversed(past):
        reading = read_answer(call.text, request=fresh, programmer=programmer)
        if any(each.candidate_id == candidate.candidate_id for each in reading.candidates):
            return call
    return None


def _fault(fault: str, heard: Completion) -> str:
    """Return why an answer holds no program; one that was cut off says so, and is to be shorter."""
    is_cut = fault and heard.finish in CUT
    return f"{fault} (it was cut off at the token limit: be brief)" if is_cut else fault


def _faults(candidate: Candidate, request: WriteRequest, *, version: str | None) -> tuple[str, ...]:
    functions: list[str] = []
    for api in request.target.apis:
        if api.language == "triton" and len(api.names) < MAX_NAMES:  # else more exist than listed
            functions += [*api.signatures, *api.names]
    return edit_faults(
        candidate.source,
        language=candidate.language,
        reference=request.problem.source,
        version=version,
        allowed=request.target.languages,
        functions=[each for each in functions if each.startswith("tl.")],
    )
