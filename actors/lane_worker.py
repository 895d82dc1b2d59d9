"""One place of a lane: an actor, whether it can be lent, and what it does now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class LaneWorker:
    """Owned by its lane."""

    number: int
    """Of the place, from 0."""
    actor: Any
    """None where there is none: it died, or nobody has needed it yet."""
    is_up: bool
    """Whether it can be lent: its actor runs, as far as anybody knows."""
    is_rising: bool = False
    """Whether its actor is being started."""
    is_out: bool = False
    """Whether it is lent no more; its actor stays, and keeps the device from others."""
    last_key: str | None = None
    """What it worked on last: its caches are warm for it."""
    calls: int = 0
    """That it runs now."""
    num_abandoned: int = 0
    """Of them, those whose answers nobody waits for any more."""
    busy_s: float = 0.0
    """Seconds of its calls so far, up to `counted_s`."""
    counted_s: float = 0.0
    """On the monotonic clock."""

    def count(self, change: int, *, now_s: float) -> None:
        """Take in that calls began or ended.

        Args:
            change: of their number.
            now_s: on the monotonic clock.
        """
        self.busy_s += self.calls * (now_s - self.counted_s)
        self.counted_s = now_s
        self.calls += change
