"""One completion whose model may call tools on the way: turns, a budget of calls, then the answer.

Invariant: it ends. Once the budget is spent, or as many turns as there are calls in it were taken,
the model is told to answer and not allowed another call; what it says then is the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from kopt.actors.programmers.openai.asking import Unanswered
from kopt.actors.programmers.openai.reply import Choice, Reply, Tokens, faulty
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.prompts.tool_offers import ToolOffers

Body = dict[str, Any]
Outcome = Reply | Trouble | Unanswered

SPENT = "No call is left. Write the answer now, from what you know."


async def converse(
    ask: Callable[[Body], Awaitable[Outcome]], body: Body, *, offers: ToolOffers, max_calls: int
) -> Outcome:
    """Ask until the model answers; its choice has every call that was made on the way.

    What was paid for is never lost: a turn that fails after the first is a faulty choice.

    Args:
        ask: sends one request.
        body: of the first, for one choice.
        offers: the tools.
        max_calls: of this completion, >= 1.
    """
    messages: list[dict[str, Any]] = list(body["messages"])
    made: list[dict[str, str]] = []
    tokens: Tokens | None = None
    for turn in range(max_calls + 1):
        may_call = turn < max_calls and len(made) < max_calls
        tools: Body = {"tools": offers.functions(), "tool_choice": "auto" if may_call else "none"}
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
            result = offers.call(call.name) if len(made) < max_calls else SPENT
            if result is not SPENT:
                made.append({"name": call.name, "arguments": call.arguments, "result": result})
            messages.append({"role": "tool", "tool_call_id": call.call_id, "content": result})
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
