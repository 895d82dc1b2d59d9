"""What an answer says about its code: the strategy, and the language it is written in.

Asked for as lines `strategy: …` and `language: …` before the code; read wherever they stand, in
whatever Markdown or JSON is round them.
"""

from __future__ import annotations

import json
import re

from kopt.candidate import Language
from kopt.foreign_language import taken_languages

MAX_STRATEGY = 400
"""Characters of a strategy; more is cut, visibly."""

MAX_LABELS = 8
"""Labels of one text that are read, from the last one back."""
_MARGIN = 40
"""Characters that may stand before a label on its line: list marks, quotes, stars."""
_BEFORE = re.compile(
    r"[\s>#*_`\"'{(\-+\d.]*(?:(?:the|my|new|key|chosen|optimi[sz]ation)[ \t])?\Z", re.IGNORECASE
)
# Both begin with a plain word, by which the regex engine passes over a long text quickly.
_STRATEGY = re.compile(r"strategy(?: note)?[\"'*_` ]{0,6}(?:[:=\n]|[-–—]{1,2} )", re.IGNORECASE)
_JSON_STRATEGY = re.compile(r'"strategy"\s{0,8}:\s{0,8}"(?P<text>(?:[^"\\]|\\.){0,4000}+)"')
_LANGUAGE = re.compile(
    r"language[\"'*_` ]{0,6}[:=][\"'*_` ]{0,6}(?P<name>[a-z+]{1,12})(?![a-z+])", re.IGNORECASE
)
_SENTENCE = re.compile(r"(.{12,}?[.!?])(?=\s|\Z)")
_PARAGRAPH_END = re.compile(
    r"\n[ \t]*(?:\n|[`~]{3}|#|[-*]{0,2}[ \t]{0,4}language\b)", re.IGNORECASE
)
_SPOKEN: dict[str, Language] = {
    "triton": "triton",
    "cuda": "cuda",
    "cute": "cute",
    "cutedsl": "cute",
    "helion": "helion",
    "c": "cpp",
    "cpp": "cpp",
    "c++": "cpp",
    "cxx": "cpp",
    "torch": "torch",
    "pytorch": "torch",
}


def one_line(text: str, *, max_characters: int = MAX_STRATEGY) -> str:
    """Return a text as one line without the marks round it, cut where it is too long."""
    line = " ".join(text[: 4 * max_characters].split()).strip(" *_`")
    if len(line) > 1 and line[0] == line[-1] and line[0] in "\"'":
        line = line[1:-1]
    return line if len(line) <= max_characters else line[: max_characters - 1].rstrip() + "…"


def declared_strategy(text: str) -> str:
    """Return the strategy that a text announces, in one line; the last one, or empty for none.

    Beside the label or, under a heading, in the paragraph below it.
    """
    in_json = _JSON_STRATEGY.search(text)
    if in_json:
        return one_line(unescaped(in_json["text"]) or in_json["text"])
    starts = [
        match.end() for match in _STRATEGY.finditer(text) if _begins_line(text, match.start())
    ]
    for start in starts[: -MAX_LABELS - 1 : -1]:
        rest = text[start : start + 4 * MAX_STRATEGY].lstrip(" *_\n")
        end = _PARAGRAPH_END.search(rest)
        found = one_line(rest[: end.start()] if end else rest)
        if found:
            return found
    return ""


def declared_language(text: str) -> Language | None:
    """Return the language that a text announces; the last one, or None."""
    found: Language | None = None
    for match in _LANGUAGE.finditer(text):
        if _begins_line(text, match.start()):
            found = spoken_language(match["name"]) or found
    return found


def spoken_language(word: str) -> Language | None:
    """Return the language that a word names, such as a fence's `cuda`; None where it names none."""
    name = word.strip(" .{}").lower()
    return next((each for each in taken_languages() if each == name), _SPOKEN.get(name))


def first_sentence(text: str) -> str:
    """Return the first sentence of some prose, in one line; headings and tags are passed over."""
    lines = [line.strip() for line in text[: 8 * MAX_STRATEGY].split("\n")]
    prose = " ".join(line for line in lines if line and line[0] not in "#`~<|{}[]")
    sentence = _SENTENCE.match(prose)
    return one_line(sentence[1] if sentence else prose)


def unescaped(text: str) -> str | None:
    """Return what the inside of a JSON string stands for; None where it is none."""
    try:
        value = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _begins_line(text: str, at: int) -> bool:
    """Whether nothing but marks stands before a label on its line."""
    window = max(0, at - _MARGIN)
    begins = text.rfind("\n", window, at) + 1
    if begins == 0 and window > 0:
        return False
    return _BEFORE.match(text[begins:at]) is not None
