"""One completion whose model may call tools on the way: turns, a budget of calls, then the answer.

Invariant: it ends. Once the budgets are spent, or all turns were taken, the model is told to answer
and not allowed another call; what it says then is the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from kopt.actors.programmers.openai.asking import Unanswered
from kopt.actors.programmers.openai.reply import Choice, Reply, Tokens, faulty
from kopt.actors.programmers.openai.tool_desk import ToolDesk
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.actors.programmers.openai.words import clean

Body = dict[str, Any]
Outcome = Reply | Trouble | Unanswered


async def converse(
    ask: Callable[[Body], Awaitable[Outcome]], body: Body, *, desk: ToolDesk
) -> Outcome:
    """Ask until the model answers; its choice has every call that was made on the way.

    What was paid for is never lost: a turn that fails after the first is a faulty choice.

    Args:
        ask: sends one request.
        body: of the first, for one choice.
        desk: the tools, with the budgets of this completion.
    """
    messages: list[dict[str, Any]] = list(body["messages"])
    made: list[dict[str, str]] = []
    tokens: Tokens | None = None
    for turn in range(desk.max_turns + 1):
        may_call = turn < desk.max_turns and desk.is_open
        tools: Body = {"tools": desk.functions(), "tool_choice": "auto" if may_call else "none"}
        outcome = await ask({**body, "messages": messages, **tools})
        if not isinstance(outcome, Reply):
            if not made:
                return outcome
            outcome = faulty(f"after {len(made)} tool calls: {outcome.reason}")
        tokens = _sum(tokens, outcome.tokens)
        choice = outcome.choices[0]
        if not choice.calls or not may_call:
            break
        messages = [*messages, _said(choice)]
        for call in choice.calls:
            heard = await desk.call(call)
            if heard.is_made:
                made.append({"name": call.name, "arguments": call.arguments, "result": heard.text})
            messages.append(
                {"role": "tool", "tool_call_id": call.call_id, "content": clean(heard.text)}
            )
    return Reply(choices=(replace(choice, made=tuple(made)),), tokens=tokens)


def _said(choice: Choice) -> dict[str, Any]:
    calls = [call.to_json() for call in choice.calls]
    return {"role": "assistant", "content": choice.text or None, "tool_calls": calls}


def _sum(one: Tokens | None, other: Tokens | None) -> Tokens | None:
    if one is None or other is None:
        return one or other
    return Tokens(
        prompt=one.prompt + other.prompt,
        cached=one.cached + other.cached,
        completion=one.completion + other.completion,
    )
