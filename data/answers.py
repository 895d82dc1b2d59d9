"""Answers as artefacts: a programmer's whole answer to JSON text and back.

An answer is kept before it is used, so that a driver that dies never pays for it twice.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from kopt.candidate import Candidate
from kopt.errors import StoreError
from kopt.ports import Answer, Completion, Message, Usage


def answer_to_text(answer: Answer) -> str:
    """Return the answer as JSON text; `answer_from_text` gives it back without the following.

    Traces and reasoning are long, nothing is made from them again, and each has an artefact of its
    own.
    """
    fields = asdict(answer)
    for completion in fields["completions"]:
        del completion["trace"], completion["reasoning"]
    return json.dumps(fields, ensure_ascii=False, sort_keys=True)


def answer_from_text(text: str) -> Answer:
    """Return the answer of an artefact.

    Raises:
        StoreError: the text is not an answer.
    """
    try:
        record = json.loads(text)
        return Answer(
            candidates=tuple(Candidate(**fields) for fields in record["candidates"]),
            exhausted=record["exhausted"],
            messages=tuple(Message(role, words) for role, words in record["messages"]),
            sampling=record["sampling"],
            completions=tuple(
                Completion(
                    **{
                        **fields,
                        "usage": Usage(**fields["usage"]),
                        "tool_calls": tuple(fields.get("tool_calls", ())),
                    }
                )
                for fields in record["completions"]
            ),
            note=record["note"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError("answer artefact", f"not an answer: {error}") from error
