"""From replies to candidates: in completion order, none twice, faults counted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kopt.actors.programmers.openai.account import usage_of
from kopt.actors.programmers.openai.reply import Choice, Reply
from kopt.actors.programmers.openai.words import one_line
from kopt.actors.programmers.openai_config import PriceConfig
from kopt.candidate import Candidate
from kopt.ports import Completion, WriteRequest
from kopt.prompts.answer import read_answer

MAX_FAULT = 120
"""Characters of one fault in a note."""


def completions_of(
    replies: Sequence[Reply], *, request: WriteRequest, programmer: str, price: PriceConfig
) -> tuple[tuple[Completion, ...], tuple[Candidate, ...]]:
    """Return every completion with its fault, and the distinct candidates in completion order.

    Args:
        replies: of an expansion's requests, in the order of their completions.
        request: what was asked.
        programmer: whom candidates name.
        price: of tokens; those of a reply are counted with its first completion.
    """
    completions: list[Completion] = []
    written: dict[str, int] = {}
    candidates: list[Candidate] = []
    for reply in replies:
        usage = usage_of(reply.tokens, price=price)
        for place, choice in enumerate(reply.choices):
            candidate, fault = _read(choice, request=request, programmer=programmer)
            if candidate is not None:
                twin = written.setdefault(candidate.candidate_id, len(completions))
                if twin == len(completions):
                    candidates.append(candidate)
                else:
                    fault = f"same as completion {twin}"
            completion = Completion(
                text=choice.text, finish=choice.finish, fault=fault, tool_calls=choice.made
            )
            completions.append(completion if place else replace(completion, usage=usage))
    return tuple(completions), tuple(candidates)


def _read(
    choice: Choice, *, request: WriteRequest, programmer: str
) -> tuple[Candidate | None, str]:
    if choice.fault:
        return None, choice.fault
    reading = read_answer(choice.text, request=request, programmer=programmer)
    if not reading.candidates:
        cut = " (cut off at the token limit)" if choice.finish == "length" else ""
        return None, f"{reading.fault}{cut}"
    return reading.candidates[0], ""


def note_of(completions: Sequence[Completion]) -> str:
    """Return one line that counts the faults by kind; empty where there are none."""
    faults = Counter(one_line(each.fault, limit=MAX_FAULT) for each in completions if each.fault)
    if not faults:
        return ""
    kinds = "; ".join(f"{fault} ({count})" for fault, count in faults.most_common())
    return one_line(
        f"{faults.total()} of {len(completions)} answers held no candidate: {kinds}", limit=400
    )
