"""A candidate: source text that claims to be a faster form of a problem's reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from kopt.identity import content_id

Language = Literal["triton", "cuda", "cute", "helion", "cpp", "torch"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

SEED_PROGRAMMER = "seed"
"""Who wrote a candidate that its search was given (`search.seeds`)."""

MAX_SOURCE_BYTES = 1_000_000
"""A larger source is refused unread: no kernel needs it, and a model that loops writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One candidate. Only `source` and `language` take part in its identity."""

    source: str
    """A Python module that defines `ModelNew` with the constructor and forward of `Model`."""
    language: Language
    """What its kernels are written in; chooses the build."""
    parent: str | None = None
    """Candidate id of what it was made from; None for a fresh seed. A label."""
    strategy: str = ""
    """What its programmer meant to do, in a line or two. A label."""
    programmer: str = ""
    """Who wrote it: `rewriter`, `openai`, …. A label."""

    @property
    def candidate_id(self) -> str:
        """Content id: equal for equal source and language, whatever the labels say."""
        return content_id("candidate", 1, {"source": self.source, "language": self.language})
