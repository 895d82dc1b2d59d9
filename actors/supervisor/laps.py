"""Where a candidate's seconds go: each stage from the end of the one before it."""

from __future__ import annotations

import time


class Laps:
    """Seconds between one stage's end and the next's, under the names of the stages.

    Invariant: they add up to the time from the first moment to the last stage's end.
    """

    def __init__(self) -> None:
        """Begin now."""
        self.laps: dict[str, float] = {}
        self._last_s = time.monotonic()

    def lap(self, name: str) -> None:
        """End a stage; one that comes twice is added up."""
        now_s = time.monotonic()
        self.laps[name] = self.laps.get(name, 0.0) + now_s - self._last_s
        self._last_s = now_s

    def void(self, name: str) -> None:
        """End a stage, and count all that was done so far under its name: it was for nothing."""
        self.lap(name)
        self.laps = {name: sum(self.laps.values())}
