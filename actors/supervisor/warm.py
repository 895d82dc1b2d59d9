"""Children forked ahead: confined, the device open, no candidate in them yet.

Invariant: a child is handed out once, to one candidate, and none that failed in any way or whose
zygote is gone is handed out at all. What a child may have does not depend on its candidate: of the
folders of builds it sees an empty one of its own, in memory, into which its candidate's builds are
copied when it is handed out. Where the kernel gives no such folder (level `mount`), no child is
forked ahead.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.actors.supervisor.turns import Turns
from kopt.actors.supervisor.zygote import Zygote
from kopt.errors import WorkerLost

_LOG = logging.getLogger(__name__)


MAKERS = 3
"""Children made at a time: making one takes longer than verifying a candidate, and is beside no
timing either."""


class WarmChildren:
    """A few children ready, made again on threads of their own as they are taken."""

    def __init__(
        self, make: Callable[[], Child], *, size: int, zygote: Zygote, builds: Path, turns: Turns
    ) -> None:
        """Begin to make them.

        Args:
            make: forks one and opens its device.
            size: how many are kept ready, >= 1.
            zygote: that forks them.
            builds: folder of all folders of builds.
            turns: of the device: none is made while something is timed.
        """
        self._make = make
        self._size = size
        self._zygote = zygote
        self._builds = builds
        self._turns = turns
        self._changed = threading.Condition()
        self._ready: deque[tuple[int, Child]] = deque()
        self._is_out_of_use = False
        """The last could not be made: none is tried until somebody asks for one, who hears why."""
        self._is_closed = False
        self._num_making = 0
        self._threads = [
            threading.Thread(target=self._fill, name=f"warm-children-{number}", daemon=True)
            for number in range(min(MAKERS, size))
        ]
        for thread in self._threads:
            thread.start()

    def take(self, *, dtype: str | None, build_dir: Path) -> Child | None:
        """Return a child that now is a candidate's; None where one must be forked for it.

        Args:
            dtype: of the candidate's problem.
            build_dir: the candidate's folder of builds.
        """
        if not build_dir.resolve().is_relative_to(self._builds.resolve()):
            return None  # built elsewhere, because the cache cannot be written
        while True:
            with self._changed:
                self._discard_dead()
                child = self._ready.popleft()[1] if self._ready else None
                self._is_out_of_use = False
                self._changed.notify_all()
            if child is None:
                return None
            try:
                child.adopt(dtype=dtype, build_dir=build_dir)
            except ChildFailed as failure:
                _LOG.warning("a child that was forked ahead was of no use: %s", failure)
                child.end()
                continue
            return child

    def settle(self) -> None:
        """Wait until as many are ready as are wanted, or no more will be.

        What is being made was begun before this was asked: whether it fails says nothing yet.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._num_making == 0 or self._is_closed)
            self._discard_dead()
            self._is_out_of_use = False
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._is_stocked() or self._is_out_of_use or self._is_closed
            )

    def close(self) -> None:
        """End them all."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        while self._ready:
            self._ready.popleft()[1].end()

    def _is_stocked(self) -> bool:
        return len(self._ready) >= self._size

    def _is_one_wanted(self) -> bool:
        has_enough = len(self._ready) + self._num_making >= self._size
        return not (has_enough or self._is_out_of_use)

    def _discard_dead(self) -> None:
        """Let go of the children that died with an earlier zygote."""
        alive = self._zygote.generation
        for made in [each for each in self._ready if each[0] != alive]:
            self._ready.remove(made)
            made[1].end()

    def _fill(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._is_one_wanted())
                if self._is_closed:
                    return
                self._num_making += 1
            made = self._made()
            with self._changed:
                self._num_making -= 1
                if made is None:
                    self._is_out_of_use = True
                else:
                    self._ready.append(made)
                    self._discard_dead()
                self._changed.notify_all()

    def _made(self) -> tuple[int, Child] | None:
        try:
            with self._turns.shared():
                generation = self._zygote.generation
                child = self._make()
        except (ChildFailed, WorkerLost) as error:
            _LOG.warning("no child is forked ahead: %s", error)
            return None
        if "mount" not in child.sandbox.split("+"):
            child.end()
            self._is_closed = True
            return None
        return generation, child
