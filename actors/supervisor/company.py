"""Whether a candidate was judged beside others, which may be to blame for what became of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Company:
    """Counts who is judged, for the threads of a supervisor."""

    def __init__(self) -> None:
        """Count nobody yet."""
        self._changing = threading.Lock()
        self._arrivals = self._present = 0

    @contextmanager
    def joined(self, *, is_alone: bool) -> Iterator[Callable[[], bool]]:
        """Be counted; gives a function: whether others were judged meanwhile.

        Args:
            is_alone: nobody else is let in; whoever is still leaving does not count.
        """
        with self._changing:
            self._arrivals += 1
            self._present += 1
            arrival, before = self._arrivals, self._present - 1
        try:
            yield lambda: not is_alone and (before > 0 or self._arrivals > arrival)
        finally:
            with self._changing:
                self._present -= 1
