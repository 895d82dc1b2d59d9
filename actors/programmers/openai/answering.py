"""From replies to candidates: in completion order, none twice, faults counted by kind. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kopt.actors.programmers.openai.account import usage_of
from kopt.actors.programmers.openai.reply import Choice, FaultKind, Reply
from kopt.actors.programmers.openai.words import one_line
from kopt.actors.programmers.openai_config import PriceConfig
from kopt.candidate import Candidate
from kopt.ports import Completion, WriteRequest
from kopt.prompts.answer import SAME_AS_PARENT, read_answer

MAX_FAULT = 120
"""Characters of one fault in a note."""


@dataclass(slots=True, kw_only=True)
class Answered:
    """What an expansion's replies come to."""

    completions: list[Completion] = field(default_factory=list)
    """Every one, with its fault."""
    candidates: list[Candidate] = field(default_factory=list)
    """Distinct, in completion order."""
    kinds: Counter[FaultKind] = field(default_factory=Counter)
    """Faults by kind."""


def completions_of(
    replies: Sequence[Reply], *, request: WriteRequest, programmer: str, price: PriceConfig
) -> Answered:
    """Return every completion with its fault, and the distinct candidates in completion order.

    Args:
        replies: of an expansion's requests, in the order of their completions.
        request: what was asked.
        programmer: whom candidates name.
        price: of tokens; those of a reply are counted with its first completion.
    """
    answered = Answered()
    written: dict[str, int] = {}
    for reply in replies:
        usage = usage_of(reply.tokens, price=price)
        for place, choice in enumerate(reply.choices):
            candidate, fault, kind = _read(choice, request=request, programmer=programmer)
            number = len(answered.completions)
            if candidate is not None:
                twin = written.setdefault(candidate.candidate_id, number)
                if twin == number:
                    answered.candidates.append(candidate)
                else:
                    fault, kind = f"same as completion {twin}", "repeated"
            if fault:
                answered.kinds[kind] += 1
            completion = Completion(
                text=choice.text,
                finish=choice.finish,
                fault=fault,
                tool_calls=choice.made,
                reasoning=choice.reasoning,
                trace=choice.trace,
            )
            answered.completions.append(completion if place else replace(completion, usage=usage))
    return answered


def is_cut(choice: Choice, *, request: WriteRequest, programmer: str) -> bool:
    """Return whether a choice ended at the token limit before it held a candidate."""
    return choice.is_cut and _read(choice, request=request, programmer=programmer)[0] is None


def _read(
    choice: Choice, *, request: WriteRequest, programmer: str
) -> tuple[Candidate | None, str, FaultKind]:
    if choice.fault:
        return None, choice.fault, choice.kind or "unreadable"
    reading = read_answer(choice.text, request=request, programmer=programmer)
    if reading.candidates:
        return reading.candidates[0], "", "no code"
    if reading.fault == SAME_AS_PARENT:
        return None, reading.fault, "repeated"
    if choice.is_cut:
        return None, f"{reading.fault} (cut off at the token limit)", "cut off"
    return None, reading.fault, "no code"


def note_of(completions: Sequence[Completion]) -> str:
    """Return one line that counts the faults; empty where there are none."""
    faults = Counter(one_line(each.fault, limit=MAX_FAULT) for each in completions if each.fault)
    if not faults:
        return ""
    kinds = "; ".join(f"{fault} ({count})" for fault, count in faults.most_common())
    return one_line(
        f"{faults.total()} of {len(completions)} answers held no candidate: {kinds}", limit=400
    )
