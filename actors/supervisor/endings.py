"""What is ended beside the work: children of candidates, sessions that nobody uses any more.

A process whose kernel hangs takes seconds to go; whoever is judged meanwhile does not wait for it.
Timing does, for it may be beside nothing that goes: each ending has its share of the device.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from kopt.actors.supervisor.turns import Turns


class Endings:
    """Ends things on threads of its own, or at once where one candidate is judged at a time."""

    def __init__(self, turns: Turns, *, in_flight: int) -> None:
        """Have nothing to end.

        Args:
            turns: of the device.
            in_flight: candidates that are judged at a time, >= 1.
        """
        self._turns = turns
        self._in_flight = in_flight
        self._threads = ThreadPoolExecutor(in_flight + 1, thread_name_prefix="endings")
        self._under_way: set[Future[None]] = set()

    def begin(self, end: Callable[[], None]) -> None:
        """End something that has its own share of the device."""
        if self._in_flight == 1:
            end()
            return
        ending = self._threads.submit(end)
        self._under_way.add(ending)
        ending.add_done_callback(self._under_way.discard)

    def begin_shared(self, end: Callable[[], None]) -> None:
        """End something that has none: it is given one, so that nothing is timed beside."""

        def shared() -> None:
            with self._turns.shared():
                end()

        self.begin(shared)

    def settle(self) -> None:
        """Wait for what is being ended.

        Raises:
            Exception: whatever one of them raised.
        """
        for ending in list(self._under_way):
            ending.result()

    def close(self) -> None:
        """Wait for what is being ended, and take no more."""
        self._threads.shutdown()
