"""A clock that can be stopped: deadlines of a child that is stopped while another is timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK_S = 0.05
"""Between two looks at a clock that is stopped, at least."""


class StoppableClock:
    """Seconds that count; whoever waits by it and whoever stops it may be two threads."""

    def __init__(self) -> None:
        """Start it."""
        self._stopped_s = 0.0
        self._since_s: float | None = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let time pass that does not count."""
        self._since_s = time.monotonic()
        try:
            yield
        finally:
            self._stopped_s += time.monotonic() - self._since_s
            self._since_s = None

    def wait(self, for_s: Callable[[float], bool], *, timeout_s: float) -> None:
        """Wait until something is so.

        Args:
            for_s: waits for it, so many seconds at most, and returns whether it is so.
            timeout_s: that count.

        Raises:
            TimeoutError: it is not so after as long.
        """
        began_s = self._counted_s()
        left_s = timeout_s
        while not for_s(max(left_s, 0.0)):
            left_s = timeout_s - (self._counted_s() - began_s)
            if left_s <= 0.0 and self._since_s is None:
                raise TimeoutError
            left_s = max(left_s, LOOK_S)

    def _counted_s(self) -> float:
        now_s, since_s = time.monotonic(), self._since_s
        return now_s - self._stopped_s - (now_s - since_s if since_s is not None else 0.0)
