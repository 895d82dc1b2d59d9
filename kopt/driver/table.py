"""The table that the jobs of a fleet sit at: whose turn it is, and what they spend together."""

from __future__ import annotations

from dataclasses import dataclass, field

from kopt.driver.limits import Spent
from kopt.driver.turns import Turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What the jobs of a fleet have in common, each with a driver of its own in one loop."""

    turns: Turns
    """Decides which of them asks next; takes the place of `Pace.max_in_flight`."""
    arm: str
    """Name of the job's arm."""
    priority: int = 0
    """Of the job: those of a higher one are served first."""
    spent: Spent = field(default_factory=Spent)
    """By all jobs that the limits bound together."""
    began_s: float | None = None
    """When the fleet began, by the driver's clock; None: when the job does."""
