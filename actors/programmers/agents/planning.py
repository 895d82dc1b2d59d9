"""The planner at work: it asks for what it needs to see, then hands in a plan (App. A.1).

Invariant: it ends. Each turn is a query, a plan or a fault, and every turn but the plan's takes one
of the queries; one more turn is for the plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from kopt.actors.programmers.agents.idea import Idea
from kopt.actors.programmers.agents_config import AgentsConfig
from kopt.direction import direction_of
from kopt.prompts.agent_conversation import bounded, said
from kopt.prompts.agent_plan import Plan, Query, plan_of_words, read_step
from kopt.prompts.agent_planner import no_plan_message, planner_prompt, query_message
from kopt.search.directions import has_collapsed

WINDOW = 6
"""Latest directions that a meltdown is seen by (KernelOPT §4.2)."""
MOST = 2
"""Approaches among them that are too few."""


async def make_plan(
    idea: Idea, config: AgentsConfig, *, beside: Sequence[str], earlier: Sequence[str]
) -> Plan | str:
    """Return a plan for an idea; else why there is none, in one line.

    Args:
        idea: that is planned.
        config: bounds.
        beside: directions of the expansion's other plans so far.
        earlier: strategies of the search, in order.

    Raises:
        Whatever whoever answers raises, and StoreError.
    """
    messages = planner_prompt(
        idea.request,
        beside=beside,
        collapsed=collapsed_of(earlier),
        max_queries=config.max_queries,
        tokens=config.tokens.planner,
        libraries=config.libraries,
    )
    left, fault = config.max_queries, ""
    for _ in range(config.max_queries + 2):
        heard = await idea.ask("planner", messages)
        if heard.fault:
            return f"the planner said nothing: {heard.fault}"
        step = read_step(heard.text)
        if isinstance(step, Plan):
            return step
        if isinstance(step, Query) and left > 0:
            left -= 1
            then = query_message(step, idea.request, left=left)
        else:
            left = max(0, left - 1)
            fault = step if isinstance(step, str) else "no query is left"
            then = no_plan_message(fault, left=left)
        messages = bounded(
            said(messages, answer=heard.text, then=then), tokens=config.tokens.planner
        )
    if "{" not in heard.text and heard.text.strip():
        return plan_of_words(heard.text)  # it keeps to no form, and has said something
    return f"the planner handed in no plan: {fault}"


def collapsed_of(strategies: Sequence[str]) -> tuple[str, ...]:
    """Return the approaches that the latest strategies came to, where those are too few."""
    recent = [each for each in strategies if direction_of(each)][-WINDOW:]
    if not has_collapsed([direction_of(each) for each in recent], window=WINDOW, most=MOST):
        return ()
    return tuple({direction_of(each): each for each in recent}.values())
