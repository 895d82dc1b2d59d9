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
    things: set[tuple[str, str]] = field(default_factory=set)
    """Kind and name of what is asked for by name, time and again, and is lost once."""

    def lose(self, kind: str, where: str, *, why: str = "", times: int = 1) -> None:
        """Count something that is left out or damaged.

        Args:
            kind: a few words, the same for all of a kind.
            where: file, line, row or event.
            why: one line.
            times: how many are lost by it, >= 1.
        """
        self.counts[kind] += times
        self._name(f"{kind}: {where}" + (f": {why}" if why else ""))

    def lose_thing(self, kind: str, name: str, *, why: str = "") -> None:
        """Count a thing that has a name, such as an artefact, the first time it is missed."""
        if (kind, name) not in self.things:
            self.things.add((kind, name))
            self.lose(kind, name, why=why)

    def add(self, other: Losses) -> None:
        """Count what was lost elsewhere in the same run; a thing that both miss counts once."""
        self.counts.update(other.counts)
        self.counts.subtract(kind for kind, _ in self.things & other.things)
        self.things |= other.things
        for place in other.places:
            if place not in self.places:
                self._name(place)

    def _name(self, place: str) -> None:
        if len(self.places) < MAX_NAMED:
            self.places.append(place)
