"""Directions: whether the latest plans still differ from one another.

Source: KernelOPT §4.2: "a meltdown detector that triggers diversity enforcement when recent
directions (up to the last six) collapse to <= 2 unique approaches, identified by normalized string
matching". The paper does not say how strings are normalised: see `direction_of`. It asks for
diversity then, not for an end; what a search does about it is the policy's to say (beam.py).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

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


def has_collapsed(directions: Sequence[str], *, window: int, most: int) -> bool:
    """Return whether the latest directions hold too few approaches.

    Fewer than `most` + 1 directions never do: they could not hold more.

    Args:
        directions: normalised, the latest last.
        window: how many of the latest count, >= 1.
        most: as many approaches as are too few, >= 1.
    """
    recent = directions[-window:]
    return len(recent) > most and len(set(recent)) <= most
