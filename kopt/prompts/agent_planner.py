"""The planner's prompt, and what is said to its queries (KernelOPT §4.2, App. A.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kopt.agent_call import Libraries
from kopt.ports import Message, WriteRequest
from kopt.prompts.agent_author import libraries_text
from kopt.prompts.agent_plan import Query
from kopt.prompts.agent_queries import answer_to, query_forms
from kopt.prompts.budget import BUDGET, Budget
from kopt.prompts.builder import CONTRACT, MATERIAL, Section, assembled
from kopt.prompts.excerpts import short_line
from kopt.prompts.hardware_text import device_text
from kopt.prompts.memory_text import guidelines_section
from kopt.prompts.policy_text import policy_text
from kopt.prompts.templates import filled

MAX_NAMED = 8
"""Directions that a prompt lists, the latest ones."""


def planner_prompt(
    request: WriteRequest,
    *,
    beside: Sequence[str] = (),
    collapsed: Sequence[str] = (),
    max_queries: int,
    tokens: int,
    libraries: Libraries = "keep",
) -> tuple[Message, ...]:
    """Return the messages that ask for a plan.

    Args:
        request: what is asked for, from a version that is right.
        beside: directions of the plans made for the same version at the same time.
        collapsed: directions that the latest plans came to, where those are too few (a meltdown).
        max_queries: queries that it may make.
        tokens: of the whole, about.
        libraries: what it is told of library calls.
    """
    return assembled(
        request,
        budget=replace(BUDGET, tokens=tokens),
        system=(_role(libraries), _device, CONTRACT, _policy, guidelines_section),
        changing=(*MATERIAL, _turn(beside, collapsed, max_queries)),
    )


def query_message(query: Query, request: WriteRequest, *, left: int) -> str:
    """Return the answer to a query, and how many are left."""
    return filled("agent_answered", answer=answer_to(query, request), left=_left(left))


def no_plan_message(fault: str, *, left: int) -> str:
    """Return what is said to words that are neither plan nor query."""
    return f"{filled('agent_no_plan', fault=short_line(fault))} ({_left(left)})"


def _left(left: int) -> str:
    if left <= 0:
        return "No query is left: hand in the plan."
    return "One query is left." if left == 1 else f"{left} queries are left."


def _role(libraries: Libraries) -> Section:
    return lambda request, budget: filled("agent_planner", libraries=libraries_text(libraries))


def _device(request: WriteRequest, budget: Budget) -> str:
    languages = ", ".join(request.target.languages)
    return f"{device_text(request.target)}\n\nVersions may be written in: {languages}."


def _policy(request: WriteRequest, budget: Budget) -> str:
    return policy_text(request.terms.ladder, device=request.target.label)


def _turn(beside: Sequence[str], collapsed: Sequence[str], max_queries: int) -> Section:
    def section(request: WriteRequest, budget: Budget) -> str:
        diversity = []
        if collapsed:
            diversity.append(filled("agent_meltdown", directions=_listed(collapsed)))
        if beside:
            diversity.append(filled("agent_other_plans", directions=_listed(beside)))
        queries = ""
        if max_queries:
            queries = filled("agent_queries", most=max_queries, forms=query_forms(request)) + "\n"
        return filled(
            "agent_planning",
            diversity="".join(f"{each}\n\n" for each in diversity),
            queries=queries,
        )

    return section


def _listed(directions: Sequence[str]) -> str:
    return "; ".join(short_line(each) for each in directions[-MAX_NAMED:])
