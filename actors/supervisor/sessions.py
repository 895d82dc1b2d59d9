"""The sessions of a device: opened once for all who want one, the last few kept ready.

A session in use stays; of those that nobody uses the one used longest ago goes first, where there
are more than are kept or memory runs short, the host's or the device's. Its end takes as long as
its processes do, seconds where a kernel hangs on the device: whoever used it last does not wait for
that. Where the memory is wanted at once, it is waited for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kopt.actors.supervisor.exchange import is_short_in
from kopt.actors.supervisor.session import Session
from kopt.errors import ProblemError
from kopt.problem import Problem


@dataclass(slots=True, eq=False)
class _Entry:
    generation: int
    session: Session | None = None
    """None while it is being opened."""
    users: int = 0
    is_stale: bool = False
    """Closed with its last user."""


class Sessions:
    """Sessions by problem, for the threads of a supervisor."""

    def __init__(
        self,
        open_session: Callable[[Problem], Session],
        *,
        keep: int,
        beside: Callable[[Callable[[], None]], None] = lambda close: close(),
        is_short: Callable[[], bool] = lambda: is_short_in("cpu"),
    ) -> None:
        """Have none yet.

        Args:
            open_session: opens one; its ProblemError goes to whoever asked.
            keep: sessions kept ready, those in use included, >= 1.
            beside: runs what closes a session, now or soon.
            is_short: whether memory is so short that none is kept which nobody uses.
        """
        self._open = open_session
        self._keep = keep
        self._beside = beside
        self._is_short = is_short
        self._num_closing = 0
        self._changed = threading.Condition()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    @contextmanager
    def use(self, problem: Problem, *, generation: int) -> Iterator[Session]:
        """Give a problem's session, opened if need be.

        Args:
            problem: that is judged.
            generation: of the zygote; the children of an earlier one's sessions are dead.

        Raises:
            ProblemError: the reference breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        entry = self._enter(problem, generation)
        try:
            assert entry.session is not None
            yield entry.session
        finally:
            with self._changed:
                entry.users -= 1
            self._close_unused()

    @property
    def has_room(self) -> bool:
        """Whether one more can be opened without another's end."""
        with self._changed:
            return len(self._entries) < self._keep and not self._is_short()

    def forget(self, problem: Problem) -> None:
        """Open the problem's session anew for its next candidate: the reference may be dead."""
        with self._changed:
            entry = self._entries.get(problem.problem_id)
            if entry is not None and entry.session is not None:
                entry.is_stale = True
        self._close_unused()

    def close_idle(self) -> None:
        """Close every session that nobody uses; their memory is free then."""
        self._close_all_unused()

    def _enter(self, problem: Problem, generation: int) -> _Entry:
        key = problem.problem_id
        with self._changed:
            while True:
                entry = self._entries.get(key)
                if entry is not None and entry.session is None:
                    self._changed.wait()  # another thread opens it
                    continue
                if entry is not None and entry.generation != generation:
                    entry.is_stale = True
                if entry is not None and not entry.is_stale:
                    entry.users += 1
                    self._entries.move_to_end(key)
                    return entry
                break
            if entry is not None:
                self._entries.pop(key)
                if entry.users:
                    self._entries[f"{key}/{id(entry)}"] = entry  # closed with its last user
            opening = self._entries[key] = _Entry(generation, users=1)
        if entry is not None and not entry.users:
            self._begin_close(entry)
        try:
            self._close_unused()
            session = self._opened(problem)
        except BaseException:
            with self._changed:
                del self._entries[key]
                self._changed.notify_all()
            raise
        with self._changed:
            opening.session = session
            self._changed.notify_all()
        return opening

    def _opened(self, problem: Problem) -> Session:
        with self._changed:
            may_come_free = self._num_closing > 0
        try:
            return self._open(problem)
        except ProblemError as error:
            if "memory" not in error.why or not (self._close_all_unused() or may_come_free):
                raise
            return self._open(problem)  # what other problems held is free now

    def _close_unused(self) -> None:
        """Have closed what is stale or too much and in nobody's use."""
        for entry in self._taken_out(self._keep):
            self._begin_close(entry)

    def _close_all_unused(self) -> bool:
        """Close what is in nobody's use, and wait until it is; say whether there was any."""
        going = self._taken_out(0)
        for entry in going:
            _close(entry)
        with self._changed:
            was_closing = self._num_closing > 0
            self._changed.wait_for(lambda: self._num_closing == 0)
        return was_closing or bool(going)

    def _begin_close(self, entry: _Entry) -> None:
        with self._changed:
            self._num_closing += 1

        def close() -> None:
            try:
                _close(entry)
            finally:
                with self._changed:
                    self._num_closing -= 1
                    self._changed.notify_all()

        self._beside(close)

    def _taken_out(self, most: int) -> list[_Entry]:
        """Take out those in nobody's use that are stale, or more than `most` altogether."""
        going = []
        with self._changed:
            if self._is_short():
                most = min(most, 1)
            for key, entry in list(self._entries.items()):  # the one used longest ago first
                is_idle = entry.users == 0 and entry.session is not None
                if is_idle and (entry.is_stale or len(self._entries) > most):
                    going.append(self._entries.pop(key))
        return going


def _close(entry: _Entry) -> None:
    if entry.session is not None:
        entry.session.close()
