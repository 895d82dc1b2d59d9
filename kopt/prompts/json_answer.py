"""Answers in JSON: objects with a strategy and code, alone or in lists, at any depth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from kopt.candidate import Language
from kopt.problem import CANDIDATE_CLASS
from kopt.prompts.labels import one_line, spoken_language, unescaped

MAX_STARTS = 8
"""Places of a text at which JSON is looked for."""
MAX_VALUES = 10_000
"""Values of one JSON text that are looked at."""
_DECODER = json.JSONDecoder(strict=False)  # models write line breaks into strings as they are
_START = re.compile(r"^[ \t]{0,12}+(?=[\[{])", re.MULTILINE)
_STRATEGY_KEYS = ("strategy", "strategy_note", "approach", "plan", "idea", "description", "summary")
_LANGUAGE_KEYS = ("language", "lang", "target_language")
_LABEL_KEYS = frozenset((*_STRATEGY_KEYS, *_LANGUAGE_KEYS))


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonCode:
    """A string of a JSON answer that may be a module, with what stands beside it."""

    text: str
    strategy: str
    language: Language | None


def looks_like_json(text: str) -> bool:
    """Return whether a text begins as a JSON object or list does."""
    return text.lstrip()[:1] in ("{", "[")


def json_value(text: str) -> object | None:
    """Return the object or list that a text begins with; None where it holds none."""
    try:
        value, _ = _DECODER.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def embedded_json(text: str) -> object | None:
    """Return the first JSON value that begins a line of a text and names ModelNew; or None."""
    for match in islice(_START.finditer(text), MAX_STARTS):
        try:
            value, end = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        if CANDIDATE_CLASS in text[match.end() : end]:
            found: object = value
            return found
    return None


def codes(value: object) -> Iterator[JsonCode]:
    """Yield every string of a JSON value that names ModelNew, in order."""
    waiting: list[tuple[object, str, Language | None]] = [(value, "", None)]
    for _ in range(MAX_VALUES):
        if not waiting:
            return
        item, strategy, language = waiting.pop()
        if isinstance(item, str):
            if CANDIDATE_CLASS in item:
                yield JsonCode(text=_with_lines(item), strategy=strategy, language=language)
        elif isinstance(item, dict):
            fields = {key.lower(): each for key, each in item.items()}
            strategy = one_line(_first_text(fields, _STRATEGY_KEYS)) or strategy
            language = spoken_language(_first_text(fields, _LANGUAGE_KEYS)) or language
            inner = [each for key, each in fields.items() if key not in _LABEL_KEYS]
            waiting += [(each, strategy, language) for each in reversed(inner)]
        elif isinstance(item, list):
            waiting += [(each, strategy, language) for each in reversed(item)]


def _first_text(item: dict[str, object], keys: tuple[str, ...]) -> str:
    return next((each for key in keys if isinstance(each := item.get(key), str)), "")


def _with_lines(text: str) -> str:
    r"""Return a code string with real line breaks: some models escape it twice (`\\n`)."""
    if "\n" not in text.strip() and "\\n" in text:
        return unescaped(text) or text
    return text
