"""Whose turn it is on a device: the one place that holds its locks.

Invariant: nothing is timed beside another kernel, nor beside code that nobody trusts. This is how:

* Timing takes the device for itself (`exclusive`). Whatever may launch a kernel holds it shared:
  a candidate from before its import until its child is gone, what makes a session for each of its
  steps, a compilation from its beginning to its answer.
* Who waits for the device for itself goes before whoever asks to share it. Candidates share it
  once and then want it for themselves once, so that both get on.
* A candidate that was verified rests until it is its turn to be timed: all its processes are
  stopped while another is timed. One that takes long to be verified does not keep the device from
  being timed on: after `PATIENCE_S` it is stopped too, and goes on after. Time that a child was
  stopped does not count against its deadlines. A kernel cannot be stopped: whoever times looks
  whether one of a suspect's is in the way, and then ends the suspects (judging.py).

A thread has one turn at most, to which its commands to a reference belong. A candidate is stopped
only while its thread waits for it, so that what the thread does itself is beside no timing either.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.held import held

PATIENCE_S = 2.0
"""How long timing waits for candidates that are being verified before they are stopped."""


@contextmanager
def halted(child: Child) -> Iterator[None]:
    """Stop every process of a child for a while, and the clock of its deadlines."""
    with held(child), child.clock.stopped():
        yield


@dataclass(slots=True, eq=False)
class Hold:
    """A device that is shared by somebody."""

    child: Child | None = None
    """What can be stopped; None: it must be waited for."""
    is_trusted: bool = False
    """Whether it runs code of ours or of the problem alone."""
    rests: bool = False
    """Whether it may be stopped at once: nothing of it is under way that anybody waits for."""
    asks: int = 0
    """Commands to its child under way: its thread does nothing but wait."""
    breathes: bool = False
    """Whether it lets others go first between its steps."""
    is_evicted: bool = False
    """Its child was ended, through no fault that was proved: it is to be judged again, alone."""
    stop: ExitStack | None = None
    """Closed to let it go on."""

    @property
    def can_stop(self) -> bool:
        """Whether whoever holds it can be stopped now: all that goes on is in its child."""
        return self.child is not None and (self.rests or self.asks > 0)


@dataclass(slots=True)
class Stopped:
    """A turn alone on the device, and who was stopped for it."""

    holds: list[Hold] = field(default_factory=list)

    @property
    def suspects(self) -> list[Hold]:
        """Candidates that were stopped: a kernel of theirs may still run."""
        return [hold for hold in self.holds if not hold.is_trusted]


class Turns:
    """Turns on one device, for the threads of one process."""

    def __init__(
        self,
        *,
        stop: Callable[[Child], AbstractContextManager[None]] = halted,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Make one that nobody holds.

        Args:
            stop: stops a child as long as the context is open.
            patience_s: how long timing waits for candidates before it stops them.
        """
        self._stop = stop
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._holds: list[Hold] = []
        self._queue: deque[object] = deque()
        self._owner: int | None = None
        self._mine = threading.local()
        self._busy_s = 0.0
        self._busy_since_s: float | None = None

    def take(self) -> Hold:
        """Hold the device beside others, for this thread, until `give_back`.

        Who is to be stopped where timing waits too long is said later (`give`).
        """
        assert self._own() is None, "a thread has one turn"
        hold = Hold()
        with self._changed:
            self._changed.wait_for(lambda: self._owner is None and not self._queue)
            self._add(hold)
        self._mine.hold = hold
        return hold

    @contextmanager
    def shared(self, *, breathes: bool = False) -> Iterator[None]:
        """Hold the device beside others; within a turn of this thread, that turn.

        Args:
            breathes: let others go first wherever `breathe` is called.
        """
        if self._is_owner() or self._own() is not None:
            yield
            return
        hold = self.take()
        hold.breathes = breathes
        try:
            yield
        finally:
            self.give_back(hold)

    def breathe(self) -> None:
        """Between two steps of something long: let those go first who want the device alone."""
        own = self._own()
        if own is None or not own.breathes:
            return
        with self._changed:
            if not self._queue:
                return
            self._holds.remove(own)
            self._note_busy()
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._owner is None and not self._queue)
            self._add(own)

    @contextmanager
    def waiting(self, child: Child) -> Iterator[None]:
        """Wait for a command to a child; if it is a candidate's, it may be stopped meanwhile.

        The thread itself does nothing while its child is stopped, before and after.
        """
        own = self._own()
        if own is None or own.child is not child:
            yield
            return
        with self._changed:
            own.asks += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._changed.wait_for(lambda: own.stop is None)
                own.asks -= 1

    def lend(self, child: Child | None, *, is_trusted: bool) -> Hold:
        """Hold the device for something that goes on by itself, until `give_back`."""
        hold = Hold(child, is_trusted=is_trusted, rests=is_trusted)
        with self._changed:
            if not self._is_owner():
                has_turn = self._own() is not None
                self._changed.wait_for(
                    lambda: self._owner is None and (has_turn or not self._queue)
                )
            self._add(hold)
        return hold

    def give(self, hold: Hold, child: Child) -> None:
        """Say who is to be stopped where timing waits too long for a hold."""
        with self._changed:
            hold.child = child
            self._changed.notify_all()

    def rest(self, hold: Hold) -> None:
        """Let this thread's hold be stopped at once, until the thread has the device alone."""
        self._leave(hold)
        with self._changed:
            hold.rests = True
            self._changed.notify_all()

    def must_end(self, hold: Hold) -> None:
        """Have timing wait for the end of a hold: its child is being ended."""
        self._leave(hold)
        with self._changed:
            hold.child, hold.rests = None, False

    def give_back(self, hold: Hold) -> None:
        """End a hold; a second time does nothing."""
        self._leave(hold)
        with self._changed:
            if hold in self._holds:  # `eq` is identity
                self._holds.remove(hold)
                self._let_go(hold)
                self._note_busy()
                self._changed.notify_all()

    def go_on(self, hold: Hold) -> None:
        """Let go on what was stopped for this thread's turn: it waits for just that."""
        with self._changed:
            self._let_go(hold)

    @contextmanager
    def exclusive(self, mine: Hold | None = None) -> Iterator[Stopped]:
        """Have the device alone; say who was stopped for it.

        Args:
            mine: hold of what is timed, at rest so far.
        """
        if self._is_owner():
            yield Stopped()
            return
        assert self._own() is None, "a thread that shares the device cannot have it alone"
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            deadline_s = time.monotonic() + self._patience_s
            try:
                while not self._is_next(ticket, deadline_s, mine):
                    self._changed.wait(max(deadline_s - time.monotonic(), 0.05))
                self._owner = threading.get_ident()
            finally:
                self._queue.remove(ticket)
            stopped = Stopped([hold for hold in self._holds if hold is not mine])
            for hold in stopped.holds:
                assert hold.child is not None
                hold.stop = ExitStack()
                hold.stop.enter_context(self._stop(hold.child))
            self._note_busy()
        try:
            yield stopped
        finally:
            with self._changed:
                for hold in stopped.holds:
                    self._let_go(hold)
                self._owner = None
                self._note_busy()
                self._changed.notify_all()

    def evict(self, hold: Hold) -> None:
        """End what a hold's child does: a kernel of it is in the way of this thread's turn."""
        assert hold.child is not None
        hold.is_evicted = True
        hold.child.kill()

    def busy_s(self) -> float:
        """Return the seconds for which somebody held the device."""
        with self._changed:
            since_s = self._busy_since_s
            return self._busy_s + (time.monotonic() - since_s if since_s is not None else 0.0)

    def _is_next(self, ticket: object, deadline_s: float, mine: Hold | None) -> bool:
        if self._owner is not None or self._queue[0] is not ticket:
            return False
        others = [hold for hold in self._holds if hold is not mine]
        if not all(hold.can_stop for hold in others):
            return False
        return time.monotonic() >= deadline_s or all(hold.rests for hold in others)

    def _leave(self, hold: Hold) -> None:
        if self._own() is hold:
            self._mine.hold = None

    def _own(self) -> Hold | None:
        return getattr(self._mine, "hold", None)

    def _is_owner(self) -> bool:
        return self._owner == threading.get_ident()

    def _add(self, hold: Hold) -> None:
        self._holds.append(hold)
        self._note_busy()

    def _let_go(self, hold: Hold) -> None:
        if hold.stop is not None:
            hold.stop.close()
            hold.stop = None

    def _note_busy(self) -> None:
        now_s = time.monotonic()
        if self._busy_since_s is not None:
            self._busy_s += now_s - self._busy_since_s
        self._busy_since_s = now_s if self._holds or self._owner is not None else None
