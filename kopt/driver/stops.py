"""When one search ends although its budget is not spent. Pure.

The tree's own reasons (budget, exhausted, all terminal, idle) are its `finished`; these are the
user's, the same for every policy.
"""

from __future__ import annotations

from dataclasses import dataclass

from kopt.verdict import Correct, Verdict

STOP_PREFIX = "stop."
"""What the reason of such an end begins with."""


@dataclass(slots=True, kw_only=True)
class Headway:
    """How far a search has come; told of each candidate in the order of telling."""

    sol_share: float = 0.0
    """Speed of light's time ÷ the best's, in (0, 1]; 0 where none is correct or it is unknown."""
    told_since_best: int = 0
    """Candidates told after the one that was last the fastest."""
    speedup: float = 0.0
    """Of the fastest."""

    def told(self, verdict: Verdict) -> None:
        """Take a candidate in."""
        if not isinstance(verdict, Correct) or verdict.timing.speedup <= self.speedup:
            self.told_since_best += 1
            return
        self.speedup, self.told_since_best = verdict.timing.speedup, 0
        self.sol_share = max(self.sol_share, verdict.timing.sol_share or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """Bounds of one search; None is no bound."""

    sol_share: float | None = None
    """Speed of light's time ÷ the best candidate's, in (0, 1]."""
    idle_iterations: int | None = None
    """Expansions' worth of candidates told in a row without a faster one."""

    def reached(self, headway: Headway, *, num_candidates: int) -> str | None:
        """Return the bound that was reached, in words for the journal, or None.

        Args:
            headway: of the search.
            num_candidates: of one of its expansions, >= 1.
        """
        if self.sol_share is not None and headway.sol_share >= self.sol_share:
            return f"stop.sol_share={self.sol_share:g}"
        idle = self.idle_iterations
        if idle is not None and headway.told_since_best >= idle * num_candidates:
            return f"stop.idle_iterations={idle}"
        return None
