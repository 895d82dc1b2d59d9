"""The prompts of those who write programs: executor, codegen, fusion; and what is said to answers.

All three know the workplace that a single author knows (device, contract, languages, checks), so a
server keeps the start of their prompts; the role stands before it, the task after the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kopt.agent_call import Author, Libraries
from kopt.evaluation import Evaluation
from kopt.ports import Attempt, Message, WriteRequest
from kopt.prompts.agent_plan import Plan, plan_text
from kopt.prompts.budget import BUDGET, Budget
from kopt.prompts.builder import FENCED, MATERIAL, VERSION, WORKPLACE, Section, assembled
from kopt.prompts.excerpts import short_line
from kopt.prompts.templates import filled
from kopt.prompts.verdict_text import verdict_text

MAX_LOG = 4_000
"""Characters of a log in what is said to an answer that failed."""


def author_prompt(
    request: WriteRequest,
    *,
    author: Author,
    plan: Plan | None,
    idea: int,
    tokens: int,
    libraries: Libraries = "keep",
) -> tuple[Message, ...]:
    """Return the messages that ask for a program.

    Args:
        request: what is asked for.
        author: the role.
        plan: to be carried out; None where the author decides.
        idea: of this node, counted from 0 over all that was asked here: others are told to differ.
        tokens: of the whole, about.
        libraries: what codegen is told of them.
    """
    form, closing = FENCED
    return assembled(
        request,
        budget=replace(BUDGET, tokens=tokens),
        system=(_role(author, libraries), *WORKPLACE, form),
        # A plan has what its executor needs of the profile and of what was tried.
        changing=(_task(plan, idea), *(MATERIAL if plan is None else VERSION), closing),
    )


def verdict_message(evaluation: Evaluation, *, idea: int) -> str:
    """Return what is said to an answer that was judged and failed (KernelOPT's retry).

    Args:
        evaluation: of its module.
        idea: number of the repair of this version, from 0.
    """
    again = ""
    if idea:
        again = " It was mended before in other ways, which are judged apart; find another cause."
    result = verdict_text(evaluation, log_characters=MAX_LOG)
    return filled("agent_mend", result=result, again=again)


def rules_message(faults: Sequence[str]) -> str:
    """Return what is said to a module that breaks rules of its text."""
    lines = "\n".join(f"- {short_line(fault)}" for fault in faults)
    return filled("agent_broken_rules", faults=lines)


def no_module_message(fault: str) -> str:
    """Return what is said to an answer without a module."""
    return filled("agent_no_module", fault=short_line(fault))


def told_apart(parent: Attempt) -> Plan:
    """Return the plan that stands for a version which no agent wrote: its author's own words."""
    strategy = " ".join(parent.candidate.strategy.split()) or "no plan is known"
    return Plan(direction=short_line(strategy), change="mend what failed, and keep its idea")


def libraries_text(libraries: Libraries) -> str:
    """Return what a role is told of library calls."""
    return filled(f"agent_libraries_{libraries}")


def _role(author: Author, libraries: Libraries) -> Section:
    if author != "codegen":
        return lambda request, budget: filled(f"agent_{author}")
    return lambda request, budget: filled("agent_codegen", libraries=libraries_text(libraries))


def _task(plan: Plan | None, idea: int) -> Section:
    def section(request: WriteRequest, budget: Budget) -> str:
        if plan is not None:
            return plan_text(plan)
        again = ""
        if idea:
            again = (
                "\nOther versions are written from here beside yours. Take another idea than the "
                "first that comes to mind."
            )
        return filled(request.expansion.mode, again=again)

    return section
