"""From a run's events to its tracker, off the driver's path.

`observe` only puts an event into a queue. A thread of its own opens the tracker, folds the events
and shows the numbers every few seconds. Whatever the tracker does, the run goes on: what it raises
is said once and ends the feed; where it hangs, the queue is dropped, that is said once, and closing
waits for it no longer than `PATIENCE_S`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from kopt.driver.tracked_scalars import TrackedScalars
from kopt.events import EventBody
from kopt.tracker import Tracker

EVERY_S = 5.0
"""Between two points of a curve."""
PATIENCE_S = 15.0
"""That the end of a run waits for its tracker."""
MOST_WAITING = 100_000
"""Events that wait for a tracker that does not answer: minutes of a large fleet."""

Seen = tuple[str, EventBody]


class TrackerFeed:
    """Feeds one tracker. A context manager; `observe` may be called from any thread."""

    def __init__(
        self,
        open_tracker: Callable[[], Tracker],
        *,
        kind: str,
        warn: Callable[[str], None],
        earlier: Iterable[Seen] = (),
        every_s: float = EVERY_S,
        patience_s: float = PATIENCE_S,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        """Prepare the feed; the tracker is opened by its thread.

        Args:
            open_tracker: returns it, ready; may raise or hang.
            kind: names it in warnings.
            warn: shows one line to the user; may be called from another thread.
            earlier: what an earlier part of the run did.
            every_s: least seconds between two calls of `log`.
            patience_s: most seconds that leaving the context waits.
            most_waiting: events that the queue holds.
        """
        self._open = open_tracker
        self._kind = kind
        self._warn = warn
        self._scalars = TrackedScalars()
        for search, event in earlier:
            self._scalars.observe(search, event)
        self._every_s = every_s
        self._patience_s = patience_s
        self._queue: queue.Queue[Seen | None] = queue.Queue(most_waiting)
        self._said = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kopt-tracker", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the tracker write what it holds, as long as that takes no longer than a while."""
        if not self._said.is_set():
            self._put(None)
            self._thread.join(self._patience_s)
            if self._thread.is_alive():
                self._say(f"does not answer for {self._patience_s:g} s")

    def observe(self, search: str, event: EventBody) -> None:
        """Take one event in; returns at once."""
        if not self._said.is_set():
            self._put((search, event))

    def _put(self, seen: Seen | None) -> None:
        try:
            self._queue.put_nowait(seen)
        except queue.Full:
            self._say(f"does not answer: {self._queue.qsize()} events wait for it")

    def _say(self, why: str) -> None:
        """Say once that the run has no tracker any more."""
        if not self._said.is_set():
            self._said.set()
            self._warn(f"tracker={self._kind}: {why}; the run goes on without it")

    def _run(self) -> None:
        try:
            tracker = self._open()
            self._feed(tracker)
            tracker.close()
        except Exception as error:  # noqa: BLE001 - the boundary to a tracker's code: it may raise anything
            self._say(" ".join(f"{type(error).__name__}: {error}".split())[:300])

    def _feed(self, tracker: Tracker) -> None:
        """Show the numbers at the pace asked for, and once more at the end."""
        due_s = time.monotonic()
        is_new, goes_on = self._scalars.step > 0, True
        while goes_on and not self._said.is_set():
            wait_s = max(0.0, due_s - time.monotonic()) if is_new else None
            try:
                seen = self._queue.get(timeout=wait_s)
            except queue.Empty:
                pass
            else:
                if seen is None:
                    goes_on = False
                else:
                    self._scalars.observe(*seen)
                    is_new = self._scalars.step > 0
            if is_new and (not goes_on or time.monotonic() >= due_s):
                tracker.log(self._scalars.values(), step=self._scalars.step)
                is_new, due_s = False, time.monotonic() + self._every_s
