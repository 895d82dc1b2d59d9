"""What of a run could not become rows, counted by kind, so that the data card says it all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MAX_NAMED = 50
"""Places named one by one; the rest are counted."""


@dataclass(slots=True)
class Losses:
    """Counts by kind of loss, with the first places where each was seen."""

    counts: Counter[str] = field(default_factory=Counter)
    """Kind of loss to how often."""
    places: list[str] = field(default_factory=list)
    """`kind: where: why`, the first MAX_NAMED of them."""

    def lose(self, kind: str, where: str, *, why: str = "", times: int = 1) -> None:
        """Count something that is left out or damaged.

        Args:
            kind: a few words, the same for all of a kind.
            where: file, line, row or event.
            why: one line.
            times: how many are lost by it, >= 1.
        """
        self.counts[kind] += times
        if len(self.places) < MAX_NAMED:
            self.places.append(f"{kind}: {where}" + (f": {why}" if why else ""))
