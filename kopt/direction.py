"""Directions: when two strategies, freely worded, are one approach.

KernelOPT compares directions "by normalized string matching" (§4.2) and does not say how strings
are normalised: `direction_of` does. Searches see by it that plans collapse (kopt.search), memories
that two items are one (kopt.memory).
"""

from __future__ import annotations

import re
import unicodedata

_BREAK = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"\d+(?:x\d+)*")


def direction_of(strategy: str) -> str:
    """Return a strategy's text in the form in which two may be the same approach.

    Unicode compatibility forms and case are folded, punctuation and runs of blanks become one
    blank, and a number by itself becomes `#`, as does `64x64`: "Tile 64x64, num_warps=8" and
    "tile 128x128; num_warps = 4" are one approach with two settings. A number within a word stays:
    `fp16` is not `fp32`, and `2d` is not `1d`.

    Returns:
        The normalised words; empty for a text without any.
    """
    folded = unicodedata.normalize("NFKC", strategy).casefold()
    words = _BREAK.sub(" ", folded).split()
    return " ".join("#" if _NUMBER.fullmatch(word) else word for word in words)
