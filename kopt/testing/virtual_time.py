"""An event loop whose clock jumps: what sleeps for an hour ends at once, in the right order."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


LOOK_EVERY_S = 0.002
"""Real seconds between two looks at the clock of work: reading it is a system call."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits while a timer is set: it adds the wait to its clock instead."""

    def __init__(self, work_s: Callable[[], float] | None) -> None:
        super().__init__()
        self._work_s = work_s
        self._slept_s = 0.0
        self._began_s = work_s() if work_s is not None else 0.0
        self._worked_s = 0.0
        self._looked_s = time.perf_counter()

    @property
    def now_s(self) -> float:
        """Seconds slept and worked; stands still between two turns of the loop."""
        return self._slept_s + self._worked_s

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout if timeout is None else 0)
        if not ready and timeout is not None:
            self._slept_s += timeout
        now_s = time.perf_counter()
        if self._work_s is not None and now_s - self._looked_s > LOOK_EVERY_S:
            self._looked_s = now_s
            self._worked_s = self._work_s() - self._began_s
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Starts at 0 s. For code that only sleeps: a socket is never given time to answer."""

    def __init__(self, *, work_s: Callable[[], float] | None = None) -> None:
        """Begin.

        Args:
            work_s: a clock of the work that is really done (`time.process_time`): what passes on
                it passes here too, a few milliseconds at a time. None lets work take no time.
        """
        self._jumping = _JumpingSelector(work_s)
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the seconds that have been slept, and worked where work counts."""
        return self._jumping.now_s


def run_in_virtual_time(
    main: Coroutine[Any, Any, T], *, work_s: Callable[[], float] | None = None
) -> T:
    """Run a coroutine to its end in a loop of its own, as asyncio.run does.

    Args:
        main: the coroutine.
        work_s: as the loop has it.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(work_s=work_s)) as runner:
        return runner.run(main)
