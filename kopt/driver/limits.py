"""Limits of a fleet: what may still be spent, and which limit ended it. Pure; time is passed in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of the whole fleet; None is no bound."""

    wall_s: float | None = None
    """Seconds since the fleet began (a resumed run begins anew)."""
    candidates: int | None = None
    """Candidates asked for in this run, those of before a resume included. An expansion is never
    cut, so the last one may go over by N - 1."""

    def reached(self, *, elapsed_s: float, candidates: int) -> str | None:
        """Return the limit that fired, in words for the journal, or None.

        `candidates` counts those told and those in flight.
        """
        if self.wall_s is not None and elapsed_s >= self.wall_s:
            return f"limits.wall_s={self.wall_s:g}"
        if self.candidates is not None and candidates >= self.candidates:
            return f"limits.candidates={self.candidates}"
        return None
