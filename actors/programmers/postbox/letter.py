"""A prompt as a letter: its id, and the file that a person or an agent reads. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kopt.agent_call import AgentCall, CallPlace
from kopt.expansion import Expansion
from kopt.identity import content_id
from kopt.ports import Message, WriteRequest

SHORT_NAME = 24
"""Characters of the problem's name in an id, at most."""
HASH_DIGITS = 8
_BORDER = re.compile(r"^----- (system|user|assistant) -----\n\n", re.MULTILINE)


def prompt_id(request: WriteRequest, *, run: str) -> str:
    """Return the id of a prompt, such as `softmax-0003-1f9c2a7b`: fit for a file's name.

    It is the place in a search that is asked for, whatever the words are: a run that goes on
    elsewhere, or with another version of kopt, finds the answers to what it asked.

    Args:
        request: what is asked for.
        run: identity of the run; two runs that share a mailbox do not share answers.
    """
    problem = request.problem
    return place_id(
        request.expansion,
        problem=problem.problem_id,
        problem_name=problem.name,
        search=request.search,
        run=run,
    )


def place_id(
    expansion: Expansion, *, problem: str, problem_name: str, search: str, run: str
) -> str:
    """Return the id of an expansion's prompt.

    Args:
        expansion: that is asked for.
        problem: its id.
        problem_name: for the beginning of the id.
        search: its name.
        run: identity of the run.
    """
    digest = content_id(
        "mailbox prompt",
        2,
        {
            "run": run,
            "search": search,
            "problem": problem,
            "expansion": expansion.ordinal,
            "parent": expansion.parent,
            "first_child": expansion.first_child,
            "n": expansion.num_candidates,
        },
    )
    return f"{_short(problem_name)}-{expansion.ordinal:04d}-{digest[:HASH_DIGITS]}"


def letter_text(letter_id: str, request: WriteRequest, messages: Sequence[Message]) -> str:
    """Return the file of a prompt: what is wanted and where, then the messages as they are."""
    wanted = request.expansion.num_candidates
    head = f"""\
id: {letter_id}
problem: {request.problem.name}
search: {request.search}, expansion {request.expansion.ordinal}
mode: {request.expansion.mode}
candidates wanted: {"1" if wanted == 1 else f"{wanted}, or fewer; each a different idea"}
answer in: answers/{letter_id}.md
its first line: prompt: {letter_id}

What follows is the prompt; README.md of this folder shows an example of an answer.
"""
    return "\n".join([head, *_parts(messages)])


def call_id(call: AgentCall, *, run: str) -> str:
    """Return the id of an agent's prompt, such as `softmax-0003-planner-1f9c2a7b`.

    Args:
        call: of the agent; its place in the search is what is named, whatever its words are.
        run: identity of the run.
    """
    problem = call.problem
    return call_place_id(
        call.place,
        problem=problem.problem_id,
        problem_name=problem.name,
        search=call.search,
        run=run,
    )


def call_place_id(
    place: CallPlace, *, problem: str, problem_name: str, search: str, run: str
) -> str:
    """Return the id of an agent's prompt.

    Args:
        place: of the call.
        problem: its id.
        problem_name: for the beginning of the id.
        search: its name.
        run: identity of the run.
    """
    digest = content_id(
        "mailbox call",
        1,
        {"run": run, "search": search, "problem": problem, "place": list(place)},
    )
    short = _short(problem_name)
    return f"{short}-{place.expansion:04d}-{place.agent}-{digest[:HASH_DIGITS]}"


def call_text(letter_id: str, call: AgentCall) -> str:
    """Return the file of an agent's prompt: whose part is asked for, then the conversation."""
    where = f"search: {call.search}, expansion {call.place.expansion}"
    if not call.search:
        where = "search: none yet: it is about the compiled model as a whole"
    head = f"""\
id: {letter_id}
problem: {call.problem.name}
{where}
part: {call.turn_name}
answer in: answers/{letter_id}.md
its first line: prompt: {letter_id}

What follows is a conversation; everything after that first line is its next message, in the form
that its last one asks for.
"""
    return "\n".join([head, *_parts(call.messages)])


def messages_of(letter: str) -> tuple[Message, ...]:
    """Return the messages of a letter as it lies in its folder; none where it holds none."""
    _, *parts = _BORDER.split(letter)
    return tuple(
        Message(role, text.strip()) for role, text in zip(parts[::2], parts[1::2], strict=True)
    )


def _short(name: str) -> str:
    last = name.rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"[^a-z0-9]+", "_", last.lower()).strip("_")[:SHORT_NAME] or "problem"


def _parts(messages: Sequence[Message]) -> list[str]:
    return [f"----- {message.role} -----\n\n{message.text.strip()}\n" for message in messages]
