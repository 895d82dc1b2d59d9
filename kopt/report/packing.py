"""Data within the page: JSON, compressed, as base64, so that 5,000 candidates open at once.

What a page shows first is one block; of candidates, each block is opened when one of it is asked
for. Texts that several candidates share (a system prompt) are kept once a block.
"""

from __future__ import annotations

import base64
import gzip
import json
import math

MAX_TEXT = 40_000
"""Characters of one message or log that are kept."""


class Texts:
    """Texts of one block, each once."""

    def __init__(self) -> None:
        """Begin with none."""
        self.kept: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Keep a text, shortened to MAX_TEXT, and return its place."""
        short = shortened(text)
        found = self._places.setdefault(short, len(self.kept))
        if found == len(self.kept):
            self.kept.append(short)
        return found


def shortened(text: str, *, most: int = MAX_TEXT) -> str:
    """Return a text of at most that many characters; what was cut out of its middle is said."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def packed(value: object) -> str:
    """Return a JSON value as base64 of gzip, the same for the same value.

    A number that is not finite has no form in JSON and becomes null: it is not known.
    """
    try:
        text = _json(value)
    except ValueError:
        text = _json(_finite(value))
    return packed_text(text)


def packed_text(text: str) -> str:
    """Return a text as base64 of gzip; what UTF-8 has no form for becomes `?`."""
    content = text.encode("utf-8", errors="replace")
    return base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode("ascii")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
