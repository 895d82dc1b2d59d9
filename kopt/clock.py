"""The Clock port on the system's clocks."""

from __future__ import annotations

import time


class SystemClock:
    """The Clock port on the system's clocks."""

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Return seconds that never run backwards."""
        return time.monotonic()
