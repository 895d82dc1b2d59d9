"""What a supervisor keeps ready, so that its device does not wait."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """How much is kept ready on one device."""

    in_flight: int = 1
    """Candidates that are judged at a time: verified beside each other, timed one by one."""
    warm_children: int = 0
    """Children forked ahead, each with the device open."""
    sessions: int = 2
    """Problems whose reference, inputs and baselines are kept: the one at work, and the one it
    alternates with."""
