"""What becomes of the strategist's answer on a model: groups cut anew, or the rule's groups."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace

from kopt.agent_call import AgentReply
from kopt.cli.compiled import TakenModel
from kopt.compiled.record import Apart, to_json
from kopt.compiled.wishes import decided
from kopt.data.atomic import write_bytes
from kopt.errors import ProblemError
from kopt.ports import Message
from kopt.prompts.agent_grouping import Grouping, grouping_prompt, pairs_of, read_grouping
from kopt.prompts.transcript import transcript

CONVERSATION = "strategist.md"
"""In a model's folder: what was asked and said, for a reader."""
MOST_FAULTS = 3
"""That a line names."""
CutAnew = Callable[..., Apart]
"""`carry_out`: called with an order and `timeout_s`."""
Reply = AgentReply | str
"""A reply, or why there is none."""


def regrouped_model(
    model: TakenModel, reply: Reply, *, timeout_s: float, cut_anew: CutAnew
) -> TakenModel:
    """Return a model with what was decided, written down in its folder.

    Args:
        model: with its choices by the rule.
        reply: to `grouping_prompt`.
        timeout_s: for cutting it anew.
        cut_anew: takes a model apart in a process of its own.
    """
    grouping = _read(reply, model.apart)
    apart = _decided(model, grouping, timeout_s=timeout_s, cut_anew=cut_anew)
    if isinstance(reply, AgentReply):
        words = reply.completion.text or f"(nothing: {reply.completion.fault})"
        read = transcript([*grouping_prompt(model.apart), Message("answer", words)])
        write_bytes(model.folder / CONVERSATION, read.encode("utf-8", errors="replace"))
    text = json.dumps(to_json(apart), indent=1)
    write_bytes(model.folder / "apart.json", text.encode("utf-8"))
    return replace(model, apart=apart)


def _read(said: Reply, apart: Apart) -> Grouping:
    if isinstance(said, str):
        return Grouping(faults=(f"nobody answered: {said}",))
    if said.completion.fault:
        return Grouping(faults=(f"nothing was said: {said.completion.fault}",))
    return read_grouping(said.completion.text, apart.choices)


def _decided(
    model: TakenModel, grouping: Grouping, *, timeout_s: float, cut_anew: CutAnew
) -> Apart:
    """Return a record with a strategist's decisions, cut anew where they change the groups."""
    apart = model.apart
    choices, _ = decided(apart.choices, grouping.wishes)
    if all(choice.fused == choice.rule_fuses for choice in choices):
        apart = replace(apart, choices=tuple(choices))
        return replace(apart, strategist=_line(apart, grouping))
    order = replace(model.order, wishes=grouping.wishes)
    sys.stderr.write(f"kopt: {apart.model}: cutting anew, as the strategist decided\n")
    try:
        again = cut_anew(order, timeout_s=timeout_s)
        failure = f"{again.cause}: {again.reason}" if again.cause else ""
    except ProblemError as error:
        failure = str(error)
    if failure:
        why = f"cutting anew failed ({failure})"
        return replace(apart, strategist=_line(apart, replace(grouping, faults=(why,))))
    _, lost = decided(again.choices, grouping.wishes)
    if lost:
        fault = f"{len(lost)} choice(s) were not there when it was compiled anew"
        grouping = replace(grouping, faults=(*grouping.faults, fault))
    return replace(again, strategist=_line(again, grouping))


def _line(apart: Apart, grouping: Grouping) -> str:
    """What became of an answer."""
    by_model = [choice for choice in apart.choices if choice.decided_by == "model"]
    other = sum(choice.fused != choice.rule_fuses for choice in by_model)
    refused = [
        choice.reason for choice in apart.choices if choice.decided_by == "rule" and choice.reason
    ]
    left = len(apart.choices) - sum(len(pair.choices) for pair in pairs_of(apart.choices))
    faults = [*grouping.faults, *dict.fromkeys(refused)]
    if left:
        faults.append(f"{left} choice(s) were not asked about")
    line = (
        f"decided {len(by_model)} of {len(apart.choices)} choice(s), {other} otherwise than the "
        "rule"
    )
    if not faults:
        return line
    more = f" and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
    told = "; ".join(faults[:MOST_FAULTS])
    # A model's words, or a person's: whatever they hold, they are one line of text.
    told = "".join(filter(str.isprintable, told.replace("\n", " ")))
    return f"{line}; by the rule: {told}{more}"
