"""What was said about a candidate: the prompt as it was sent, and the answers to it."""

from __future__ import annotations

import json
from typing import Any

from kopt.data.artefacts import Artefacts
from kopt.data.fold import ExpansionState
from kopt.errors import StoreError
from kopt.report.packing import Texts

LOST = "(this text is not in the run's artefacts any more)"


def dialogue(expansion: ExpansionState, *, artefacts: Artefacts, texts: Texts) -> dict[str, Any]:
    """Return the messages and answers of an expansion as plain values.

    Args:
        expansion: that a candidate came from.
        artefacts: of its run.
        texts: where the texts go; the result holds their places.
    """
    prompt = expansion.prompt
    messages = [] if prompt is None else _messages(prompt.messages, artefacts)
    return {
        "sent": prompt is not None,
        "tokens": None if prompt is None else prompt.tokens,
        "messages": [[role, texts.place(text)] for role, text in messages],
        "answers": [
            {
                "index": answer.index,
                "text": _place(answer.text, artefacts, texts),
                "reasoning": _place(answer.reasoning, artefacts, texts),
                "calls": [str(call.get("name")) for call in answer.tool_calls],
                "finish": answer.finish,
                "fault": answer.fault,
                "note": answer.note,
                "tokens_in": answer.tokens_in,
                "tokens_out": answer.tokens_out,
                "cost_usd": answer.cost_usd,
            }
            for answer in expansion.answers.values()
        ],
    }


def read_text(sha256: str, artefacts: Artefacts) -> str:
    """Return an artefact's text; LOST where it is missing or damaged."""
    try:
        return artefacts.get(sha256)
    except StoreError:
        return LOST


def _messages(sha256: str, artefacts: Artefacts) -> list[tuple[str, str]]:
    text = read_text(sha256, artefacts)
    try:
        return [(str(role), str(words)) for role, words in json.loads(text)]
    except (ValueError, TypeError):
        return [("prompt", text)]


def _place(sha256: str | None, artefacts: Artefacts, texts: Texts) -> int | None:
    return None if sha256 is None else texts.place(read_text(sha256, artefacts))
