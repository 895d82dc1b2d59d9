"""A lane: a few Ray actors of one kind, lent a call or a few at a time, replaced when they die.

Invariant: an actor runs at most `depth` calls; a caller gets its answer, or WorkerLost after the
retries. Calls beside one that killed its actor are tried again as that one is. An actor that died
leaves its place empty; the next call that is lent it starts a new one, so that nothing is started
while a fleet is being stopped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from kopt.actors.lane_order import FreeWorkers, Waiting
from kopt.errors import KoptError, WorkerLost
from kopt.lane import LaneLoad

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Worker:
    number: int
    actor: Any
    """None where there is none: it died, or nobody has needed it yet."""
    last_key: str | None = None
    """What it worked on last: its caches are warm for it."""
    calls: int = 0
    """That it runs now."""


class ActorLane:
    """A bounded pool of equal actors behind one `call`."""

    def __init__(
        self,
        name: str,
        start: Callable[[int], Any],
        *,
        size: int,
        max_retries: int,
        limit_s: float,
        depth: int = 1,
        started: int | None = None,
    ) -> None:
        """Start the actors.

        Args:
            name: for errors and logs ("timing").
            start: makes the actor of a number, 0 … size-1; called again when it died.
            size: actors, >= 1.
            max_retries: how often a call whose actor died is tried again.
            limit_s: seconds after which a call counts as hung: its actor is killed. The actor has
                deadlines of its own; this one is for the actor itself.
            depth: calls of one actor at a time, >= 1; above 1 its class is one for threads.
            started: actors started now; the others when there is a call for them. None: all.
        """
        self._name = name
        self._start = start
        self._max_retries = max_retries
        self._limit_s = limit_s
        self._depth = depth
        self._workers = [
            _Worker(number, start(number) if started is None or number < started else None)
            for number in range(size)
        ]
        self._free = FreeWorkers(depth=depth)
        for worker in self._workers:
            self._note(worker)
        self._waiting: Waiting[asyncio.Future[_Worker]] = Waiting()
        self._num_calls = 0
        self._busy_s = 0.0
        self._began_s = self._counted_s = time.monotonic()

    async def call(self, method: str, *args: object, key: str = "") -> tuple[Any, float]:
        """Run `actor.method(*args)` on an idle actor, one that worked on `key` if there is one.

        Returns:
            The method's result, and the seconds that went by before the actor that gave it was
            lent: in the queue, and with actors that died.

        Raises:
            WorkerLost: the actors that ran it died, once and on every retry.
            KoptError: whatever the method itself raised on purpose. What it raised otherwise is
                a WorkerLost too, without retries.
        """
        asked_s = time.monotonic()
        lost = ""
        for _ in range(self._max_retries + 1):
            worker = await self._lend(key)
            queued_s = time.monotonic() - asked_s
            if worker.actor is None:
                _LOG.info("%s-%d is started", self._name, worker.number)
                worker.actor = self._start(worker.number)
                self._note(worker)
            actor = worker.actor
            try:
                reference = getattr(actor, method).remote(*args)
                return await asyncio.wait_for(reference, self._limit_s), queued_s
            except RayActorError as error:
                lost = f"died: {str(error).splitlines()[0]}"
                self._retire(worker, actor)
            except RayTaskError as error:  # before TimeoutError: a method may raise that too
                cause = error.cause
                if isinstance(cause, KoptError):
                    raise _plain(cause) from None
                # A bug of ours costs this call, not the fleet; the log has all of it.
                _LOG.exception("%s-%d: %s failed", self._name, worker.number, method)
                raise WorkerLost(
                    f"{self._name}-{worker.number}",
                    f"{method} raised {type(cause).__name__}: {cause.args[:1]}",
                ) from None
            except TimeoutError:
                lost = f"did not answer within {self._limit_s:g} s"
                self._retire(worker, actor)
            except asyncio.CancelledError:
                self._retire(worker, actor)  # it still runs in there; nobody will hear its answer
                raise
            finally:
                self._give_back(worker)
        raise WorkerLost(f"{self._name}-{worker.number}", lost)

    async def each(self, method: str, *args: object) -> list[Any]:
        """Run a method on every actor there is, in order of their numbers."""
        return list(
            await asyncio.gather(
                *(
                    getattr(worker.actor, method).remote(*args)
                    for worker in self._workers
                    if worker.actor is not None
                )
            )
        )

    def load(self) -> LaneLoad:
        """Return how full the lane is now."""
        self._count(0)
        return LaneLoad(
            name=self._name,
            num_calls=self._num_calls,
            num_places=self._depth * len(self._workers),
            num_waiting=len(self._waiting),
            busy_s=self._busy_s,
            began_s=self._counted_s - self._began_s,
        )

    def close(self) -> None:
        """Kill the idle actors; busy ones go with the cluster."""
        for worker in self._workers:
            if not worker.calls:
                self._retire(worker, worker.actor)

    async def _lend(self, key: str) -> _Worker:
        number = self._free.choose(key)
        if number is not None:
            worker = self._workers[number]
            self._take(worker, key)
            return worker
        lent: asyncio.Future[_Worker] = asyncio.get_running_loop().create_future()
        ticket = self._waiting.add(key, lent)
        try:
            return await lent
        except asyncio.CancelledError:
            if not self._waiting.leave(ticket) and not lent.cancelled():
                self._give_back(lent.result())
            raise

    def _give_back(self, worker: _Worker) -> None:
        worker.calls -= 1
        self._count(-1)
        waiter = self._waiting.take(worker.last_key)
        while waiter is not None and waiter[1].done():  # given up, and has yet to leave
            waiter = self._waiting.take(worker.last_key)
        if waiter is None:
            self._note(worker)
            return
        key, lent = waiter
        self._take(worker, key)
        lent.set_result(worker)

    def _take(self, worker: _Worker, key: str) -> None:
        worker.last_key = key
        worker.calls += 1
        self._count(1)
        self._note(worker)

    def _retire(self, worker: _Worker, actor: Any) -> None:  # noqa: ANN401 - Ray types no handle
        """End an actor, unless a call beside this one has done so and another is in its place."""
        if actor is None or worker.actor is not actor:
            return
        self._end(actor)
        worker.actor = None
        worker.last_key = None
        self._note(worker)

    def _end(self, actor: Any) -> None:  # noqa: ANN401 - Ray types no handle
        ray.kill(actor)

    def _count(self, change: int) -> None:
        """Take in that calls began or ended."""
        now_s = time.monotonic()
        self._busy_s += self._num_calls * (now_s - self._counted_s)
        self._counted_s = now_s
        self._num_calls += change

    def _note(self, worker: _Worker) -> None:
        """Have it found, or not, by the next call."""
        self._free.put(
            worker.number,
            calls=worker.calls,
            has_actor=worker.actor is not None,
            last_key=worker.last_key,
        )


def _plain(error: KoptError) -> KoptError:
    """Rebuild an error that Ray wrapped: its class without Ray's mixed-in traceback."""
    for base in type(error).__mro__:
        if issubclass(base, KoptError) and base.__module__ == "kopt.errors":
            return base(*error.args)
    return error
