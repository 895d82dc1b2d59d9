"""JSON objects in a model's words, wherever they stand, within bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kopt.prompts.plain_text import clean_text
from kopt.prompts.thinking import without_thinking

MAX_STARTS = 8
"""Braces of a text at which an object is looked for."""
_DECODER = json.JSONDecoder(strict=False)  # models write line breaks into strings as they are


def json_objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of an answer in order, those within others too; reasoning is passed over.

    Args:
        text: of a model.
    """
    body, _ = without_thinking(clean_text(text))
    place = body.find("{")
    for _ in range(MAX_STARTS):
        if place < 0:
            return
        try:
            value, _ = _DECODER.raw_decode(body, place)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            yield value
        place = body.find("{", place + 1)


def no_object(text: str) -> str:
    """Return the words for an answer without any object."""
    _, is_thinking = without_thinking(clean_text(text))
    return "no JSON object" + (" (it ended while it was reasoning)" if is_thinking else "")
