"""A prompt as a letter: its id, and the file that a person or an agent reads. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kopt.identity import content_id
from kopt.ports import Message, WriteRequest

SHORT_NAME = 24
"""Characters of the problem's name in an id, at most."""
HASH_DIGITS = 8


def prompt_id(request: WriteRequest, messages: Sequence[Message], *, run: str) -> str:
    """Return the id of a prompt, such as `softmax-0003-1f9c2a7b`: fit for a file's name.

    Equal requests of one run give equal ids, so that a resumed run finds what lies there.

    Args:
        request: what is asked for.
        messages: the prompt.
        run: name of the run; two runs that share a mailbox do not share answers.
    """
    expansion = request.expansion
    digest = content_id(
        "mailbox prompt",
        1,
        {
            "run": run,
            "search": request.search,
            "problem": request.problem.problem_id,
            "expansion": expansion.ordinal,
            "first_child": expansion.first_child,
            "n": expansion.num_candidates,
            "messages": [list(message) for message in messages],
        },
    )
    last = request.problem.name.rstrip("/").rsplit("/", 1)[-1]
    short = re.sub(r"[^a-z0-9]+", "_", last.lower()).strip("_")[:SHORT_NAME] or "problem"
    return f"{short}-{expansion.ordinal:04d}-{digest[:HASH_DIGITS]}"


def letter_text(letter_id: str, request: WriteRequest, messages: Sequence[Message]) -> str:
    """Return the file of a prompt: what is wanted and where, then the messages as they are."""
    wanted = request.expansion.num_candidates
    blocks = "a `strategy:` line and one fenced block with the whole module"
    each = f"then {blocks}" if wanted == 1 else f"then, for each candidate, {blocks}"
    head = f"""\
id: {letter_id}
problem: {request.problem.name}
search: {request.search}, expansion {request.expansion.ordinal}
mode: {request.expansion.mode}
candidates wanted: {"1" if wanted == 1 else f"{wanted}, or fewer; each a different idea"}
answer in: answers/{letter_id}.md

The answer's first line is `prompt: {letter_id}`, {each}.
README.md of this folder shows an example. What follows is the prompt.
"""
    parts = [f"----- {message.role} -----\n\n{message.text.strip()}\n" for message in messages]
    return "\n".join([head, *parts])
