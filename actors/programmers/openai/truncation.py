"""An answer that ended at the token limit is asked for again, in two phases (KernelPro §3.2.2).

Phase A: the same prompt and seed, with twice the limit. Phase B, if that is cut as well: at the
doubled limit, with an appended directive to begin anew and be brief; where the doubled limit is
refused, phase B keeps to the first. What is still cut then is a fault like any other. Where no
limit is set there is none to double: the server's own is mostly its context, and what fills that
has lost its way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from kopt.actors.programmers.openai.asking import Unanswered
from kopt.actors.programmers.openai.reply import Reply
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.prompts.templates import filled

Body = dict[str, Any]
Outcome = Reply | Trouble | Unanswered

FACTOR = 2
"""Of the limit, in phase A."""


async def asked_again(
    ask: Callable[[Body], Awaitable[Outcome]],
    body: Body,
    *,
    limit_key: str,
    is_cut: Callable[[Reply], bool],
) -> list[tuple[Body, Outcome]]:
    """Return what was asked and what came, phase by phase; the last one counts.

    Args:
        ask: sends one request.
        body: of the one whose answer was cut, for one choice.
        limit_key: the field that holds the limit of tokens.
        is_cut: whether a reply's only choice ended at the limit and holds no candidate.
    """
    longer = {**body, limit_key: FACTOR * body[limit_key]}
    outcome = await ask(longer)
    tried = [(longer, outcome)]
    if isinstance(outcome, Unanswered):
        return tried  # the deadline is over, or nobody answers
    if isinstance(outcome, Reply):
        if not is_cut(outcome):
            return tried
        body = longer
    brief = {**body, "messages": _with_directive(body["messages"])}
    tried.append((brief, await ask(brief)))
    return tried


def _with_directive(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The directive ends the last message: some chat templates take no two of one role."""
    *before, last = messages
    return [*before, {**last, "content": f"{last['content']}\n\n{filled('concise')}"}]
