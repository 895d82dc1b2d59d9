"""Limits of a fleet: what may still be spent, and which limit ended it. Pure; time is passed in."""

from __future__ import annotations

from dataclasses import dataclass

from kopt.ports import Usage

LIMIT_PREFIX = "limits."
"""What the reason of an end by a limit begins with."""
FAILED_PREFIX = "failed: "
"""The same of an end by a failure."""


@dataclass(slots=True, kw_only=True)
class Spent:
    """What the answers of a run have cost so far, those of before a resume included."""

    tokens: int = 0
    """Read and written."""
    cost_usd: float = 0.0

    def add(self, usage: Usage) -> None:
        """Take one completion in."""
        self.tokens += usage.tokens_in + usage.tokens_out
        self.cost_usd += usage.cost_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of the whole fleet; None is no bound."""

    wall_s: float | None = None
    """Seconds since the fleet began (a resumed run begins anew)."""
    candidates: int | None = None
    """Candidates asked for in this run, those of before a resume included. An expansion is never
    cut, so the last one may go over by N - 1."""

    tokens: int | None = None
    """Read and written by models. What is in flight when it is reached is still paid for."""
    cost_usd: float | None = None
    """The same, in dollars at the configured prices."""

    def reached(self, *, elapsed_s: float, candidates: int, spent: Spent) -> str | None:
        """Return the limit that fired, in words for the journal, or None.

        `candidates` counts those told and those in flight.
        """
        if self.wall_s is not None and elapsed_s >= self.wall_s:
            return f"limits.wall_s={self.wall_s:g}"
        if self.candidates is not None and candidates >= self.candidates:
            return f"limits.candidates={self.candidates}"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"limits.tokens={self.tokens}"
        if self.cost_usd is not None and spent.cost_usd >= self.cost_usd:
            return f"limits.cost_usd={self.cost_usd:g}"
        return None
