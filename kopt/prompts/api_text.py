"""Signatures of an installed package in words: as many as fit, the rest by name, then counted."""

from __future__ import annotations

import re

from kopt.api import Api
from kopt.prompts.excerpts import fenced

MAX_SIGNATURE = 125
"""Characters of one signature; a longer one loses its defaults, then its last parameters."""
NAMES_SHARE = 0.12
"""Of the bound, kept for names without parameters."""
_DEFAULT = re.compile(r"=(?:\([^()]*\)|\[[^\[\]]*\]|'[^']*'|\"[^\"]*\"|[^,()]*)(?=, |\)$)")


def api_text(api: Api, *, max_characters: int) -> str:
    """Return the appendix of a language; empty where not even a few signatures fit.

    Args:
        api: of its package.
        max_characters: bound of the whole.
    """
    head = f"Signatures of {api.package} {api.version}, as installed:"
    room = int((1 - NAMES_SHARE) * max_characters) - len(head) - len("\n\n```\n\n```\n\n")
    signatures = [_short(each) for each in api.signatures]
    shown = _fitting(signatures, room, separator=1)
    if not shown:
        return ""
    lines = "\n".join(signatures[:shown])
    text = f"{head}\n\n{fenced(lines)}"
    others = [*(each.partition("(")[0] for each in api.signatures[shown:]), *api.names]
    label, rest = "\n\nAlso: ", ", … 9999 more"
    named = _fitting(others, max_characters - len(text) - len(label) - len(rest), separator=2)
    if not named:
        return text
    left = len(others) - named
    more = f", … {left} more" if left else ""
    return f"{text}{label}{', '.join(others[:named])}{more}"


def _short(signature: str) -> str:
    """Return a signature that is not too long: that a parameter exists is worth its default."""
    if len(signature) > MAX_SIGNATURE:
        signature = _DEFAULT.sub("", signature)
    if len(signature) <= MAX_SIGNATURE:
        return signature
    return f"{signature[:MAX_SIGNATURE].rpartition(', ')[0]}, …)"


def _fitting(texts: list[str], room: int, *, separator: int) -> int:
    """Return how many of the first texts fit, each with its separator."""
    used = 0
    for number, text in enumerate(texts):
        used += len(text) + separator
        if used > room:
            return number
    return len(texts)
