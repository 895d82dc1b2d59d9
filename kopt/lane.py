"""How full a lane is: the calls that it runs, those that wait for it, and its work so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLoad:
    """One lane at one moment."""

    name: str
    """`build`, `timing`."""
    num_calls: int
    """That run now."""
    num_places: int
    """Calls that can run at a time, >= 1."""
    num_waiting: int
    """Calls that wait for a place."""
    busy_s: float
    """Seconds of its places that were taken, since the lane began: 60 for two that were taken for
    half a minute each."""
    began_s: float
    """Seconds since the lane began."""
    worker_busy_s: tuple[float, ...] = ()
    """Of `busy_s`, each worker's share, by number: a worker that starves beside others shows."""

    @property
    def occupancy(self) -> float:
        """Share of its places that were taken, since it began: 0 to 1."""
        whole_s = self.began_s * self.num_places
        return min(1.0, self.busy_s / whole_s) if whole_s > 0.0 else 0.0
