"""A lane: a few Ray actors of one kind, lent one call at a time, replaced when they die.

Invariant: an actor runs at most one call; a caller gets its answer, or WorkerLost after the
retries. An actor that died leaves its place empty; the next call that is lent it starts a new one,
so that nothing is started while a fleet is being stopped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from kopt.errors import KoptError, WorkerLost

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Worker:
    number: int
    actor: Any
    """None where it died and nobody has needed it since."""
    last_key: str | None = None
    """What it worked on last: its caches are warm for it."""


@dataclass(slots=True)
class _Waiter:
    key: str
    lent: asyncio.Future[_Worker] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


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
    ) -> None:
        """Start the actors.

        Args:
            name: for errors and logs ("timing").
            start: makes the actor of a number, 0 … size-1; called again when it died.
            size: actors, >= 1.
            max_retries: how often a call whose actor died is tried again.
            limit_s: seconds after which a call counts as hung: its actor is killed. The actor has
                deadlines of its own; this one is for the actor itself.
        """
        self._name = name
        self._start = start
        self._max_retries = max_retries
        self._limit_s = limit_s
        self._idle = [_Worker(number, start(number)) for number in range(size)]
        self._waiting: deque[_Waiter] = deque()

    async def call(self, method: str, *args: object, key: str = "") -> tuple[Any, float]:
        """Run `actor.method(*args)` on an idle actor, one that worked on `key` if there is one.

        Returns:
            The method's result, and the seconds the call waited for an actor.

        Raises:
            WorkerLost: the actors that ran it died, once and on every retry.
            KoptError: whatever the method itself raised on purpose. What it raised otherwise is
                a WorkerLost too, without retries.
        """
        queued_s = 0.0
        lost = ""
        for _ in range(self._max_retries + 1):
            asked_s = time.monotonic()
            worker = await self._lend(key)
            queued_s += time.monotonic() - asked_s
            try:
                if worker.actor is None:
                    _LOG.warning("%s-%d is started again", self._name, worker.number)
                    worker.actor = self._start(worker.number)
                reference = getattr(worker.actor, method).remote(*args)
                return await asyncio.wait_for(reference, self._limit_s), queued_s
            except RayActorError as error:
                lost = f"died: {str(error).splitlines()[0]}"
                self._retire(worker)
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
                self._retire(worker)
            except asyncio.CancelledError:
                self._retire(worker)  # the call still runs in there; nobody will hear its answer
                raise
            finally:
                self._give_back(worker)
        raise WorkerLost(f"{self._name}-{worker.number}", lost)

    async def each(self, method: str, *args: object) -> list[Any]:
        """Run a method on every actor, in order of their numbers; for start-up and tests."""
        workers = sorted(self._idle, key=lambda worker: worker.number)
        return list(
            await asyncio.gather(
                *(getattr(worker.actor, method).remote(*args) for worker in workers)
            )
        )

    def close(self) -> None:
        """Kill the idle actors; busy ones go with the cluster."""
        for worker in self._idle:
            self._retire(worker)
        self._idle.clear()

    async def _lend(self, key: str) -> _Worker:
        if self._idle:
            worker = self._choose(key)
            self._idle.remove(worker)
            worker.last_key = key
            return worker
        waiter = _Waiter(key)
        self._waiting.append(waiter)
        try:
            return await waiter.lent
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            elif not waiter.lent.cancelled():
                self._give_back(waiter.lent.result())
            raise

    def _choose(self, key: str) -> _Worker:
        """Prefer warm caches, then an actor that has none to lose."""
        ranked = sorted(
            self._idle,
            key=lambda worker: (worker.last_key != key, worker.last_key is not None, worker.number),
        )
        return ranked[0]

    def _give_back(self, worker: _Worker) -> None:
        live = [waiter for waiter in self._waiting if not waiter.lent.done()]
        if not live:
            self._idle.append(worker)
            return
        waiter = next((each for each in live if each.key == worker.last_key), live[0])
        self._waiting.remove(waiter)
        worker.last_key = waiter.key
        waiter.lent.set_result(worker)

    def _retire(self, worker: _Worker) -> None:
        if worker.actor is not None:
            ray.kill(worker.actor)
        worker.actor = None
        worker.last_key = None


def _plain(error: KoptError) -> KoptError:
    """Rebuild an error that Ray wrapped: its class without Ray's mixed-in traceback."""
    for base in type(error).__mro__:
        if issubclass(base, KoptError) and base.__module__ == "kopt.errors":
            return base(*error.args)
    return error
