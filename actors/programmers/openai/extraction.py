"""The answer of the model that draws lessons for a search's memory, read and accounted for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kopt.actors.programmers.openai.account import usage_of
from kopt.actors.programmers.openai.reply import Reply
from kopt.actors.programmers.openai_config import PriceConfig
from kopt.ports import Completion, ExtractionAnswer, Message
from kopt.prompts.extraction import ExtractionReading, read_extraction


def places_for_lessons(max_concurrency: int) -> int:
    """Return how many extractions may be under way: half the turns stay with those who write."""
    return max(1, max_concurrency // 2)


def extraction_answer(
    reply: Reply, *, messages: Sequence[Message], sampling: Mapping[str, Any], price: PriceConfig
) -> ExtractionAnswer:
    """Return what a reply of one choice comes to.

    Args:
        reply: of the endpoint, without secrets.
        messages: the prompt as sent.
        sampling: as sent.
        price: of the model.
    """
    choice = reply.choices[0]
    reading = ExtractionReading(None, choice.fault)
    if not choice.fault:
        reading = read_extraction(choice.text)
    return ExtractionAnswer(
        entries=reading.entries,
        messages=tuple(messages),
        sampling=sampling,
        completion=Completion(
            text=choice.text,
            finish=choice.finish,
            fault=reading.fault,
            usage=usage_of(reply.tokens, price=price),
        ),
    )
