"""A precedent: how the most similar problem of earlier runs was made fast, step by step.

Never the problem itself: what earlier runs found for that is `search.seeds`' matter, and a search
that was told its own answer would measure nothing. Alike are problems of one family, or whose
references have much text in common.
"""

from __future__ import annotations

from dataclasses import dataclass

LEAST_SIMILARITY = 0.25
"""Of the references' texts (Jaccard of token 5-grams), where the families differ."""
MAX_STEPS = 12
"""Of a lineage that are told, the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastStep:
    """One version on the way."""

    strategy: str
    """One line; may be empty."""
    kind: str
    """Of its verdict; empty where it was not judged."""
    speedup: float | None = None
    """Over the baseline; None unless correct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedent:
    """What is told of a past problem."""

    problem: str
    """Its id."""
    family: str
    """Kind of computation; empty where it is not known."""
    similarity: float
    """Of the references' texts, 0 to 1."""
    language: str
    """Of the fastest version."""
    speedup: float
    """Of the fastest version, over its baseline."""
    steps: tuple[PastStep, ...]
    """From the first version to the fastest."""
    older: int
    """Versions before these."""
    source: str
    """Of the fastest version; its middle may be left out, visibly."""


def is_alike(similarity: float, *, is_same_family: bool) -> bool:
    """Return whether a past problem can be told of."""
    return is_same_family or similarity >= LEAST_SIMILARITY
