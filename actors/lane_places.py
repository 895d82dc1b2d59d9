"""The places of a lane: actors that are brought up, lent and replaced when they die.

An actor that died leaves its place empty; a call that waits has a new one started, so that nothing
is started while a fleet is being stopped. A place is lent once its actor is up: where its node is
gone, the new actor waits for another node, and calls go to the actors that are left.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from ray.exceptions import RayActorError, RayTaskError

from kopt.actors.lane_errors import NotStarted
from kopt.actors.lane_order import FreeWorkers, Waiting
from kopt.actors.lane_worker import LaneWorker
from kopt.actors.ward import Ward
from kopt.errors import WorkerLost
from kopt.lane import LaneLoad

_LOG = logging.getLogger(__name__)


class LanePlaces:
    """Who is lent to which call, and who waits. Of one event loop."""

    def __init__(
        self,
        name: str,
        start: Callable[[int], Any],
        *,
        size: int,
        started: int | None,
        depth: int,
        ward: Ward | None,
        keys: int,
        end: Callable[[Any], None],
    ) -> None:
        """Start the actors.

        Args:
            name: of the lane.
            start: makes the actor of a number.
            size: places, >= 1.
            started: of them, those whose actors are started now; None: all.
            depth: calls of one actor at a time, >= 1.
            ward: says which actors are lent; None: all that are up.
            keys: that an actor is warm for at a time, >= 1.
            end: ends an actor.
        """
        self._name = name
        self._start = start
        self._end = end
        self._depth = depth
        self._ward = ward
        self._workers = [
            LaneWorker(number, start(number) if is_wanted else None, is_up=is_wanted)
            for number, is_wanted in ((n, started is None or n < started) for n in range(size))
        ]
        self._rising: set[asyncio.Task[None]] = set()
        self._free = FreeWorkers(depth=depth)
        for worker in self._workers:
            self._note(worker)
        self._waiting: Waiting[asyncio.Future[LaneWorker]] = Waiting(keys=keys)
        self._num_calls = 0
        self._busy_s = 0.0
        self._began_s = self._counted_s = time.monotonic()

    @property
    def num_places(self) -> int:
        """Calls that can run at a time."""
        return self._depth * len(self._workers)

    def there(self) -> list[LaneWorker]:
        """Return the workers that have an actor, in order of their numbers."""
        return [worker for worker in self._workers if worker.actor is not None]

    def beside(self, key: str) -> LaneWorker | None:
        """Return the worker that takes up a key beside its calls: one that works on it, if any."""
        there = [worker for worker in self._workers if worker.is_up and not worker.is_out]
        if not there:
            return None
        at_home = self._waiting.homes(key) & {each.number for each in there}
        worker = min(
            (each for each in there if each.number in at_home or not at_home),
            key=lambda each: (*self._waiting.held_by(each.number), each.calls, each.number),
        )
        self._waiting.take_up(worker.number, key)
        return worker

    async def lend(self, key: str) -> LaneWorker:
        """Lend an idle worker, one that worked on the key if there is one; wait if there is none.

        Raises:
            NotStarted: the actor that was started for this call did not come up.
            WorkerLost: no worker will be lent any more.
        """
        while (number := self._free.choose(key)) is not None:
            worker = self._workers[number]
            if worker.is_up:
                self._take(worker, key)
                return worker
            if len(self._rising) > len(self._waiting):
                break  # one of those is for this call
            self._bring_up(worker)
        if all(worker.is_out for worker in self._workers):
            raise WorkerLost(self._name, "none of its workers is to be trusted any more")
        lent: asyncio.Future[LaneWorker] = asyncio.get_running_loop().create_future()
        ticket = self._waiting.add(key, lent)
        try:
            return await lent
        except asyncio.CancelledError:
            is_lent = not self._waiting.leave(ticket) and not lent.cancelled()
            if is_lent and lent.exception() is None:
                self.give_back(lent.result())
            raise

    def give_back(self, worker: LaneWorker) -> None:
        """Take a worker back from a call, and lend it to the next."""
        worker.count(-1, now_s=self._count(-1))
        self._serve(worker)
        if not worker.is_up:
            # Not at once: where a fleet is being stopped, those that wait have yet to leave.
            asyncio.get_running_loop().call_soon(self._replace, worker)

    def keep(self, worker: LaneWorker) -> None:
        """Count a call of which nobody hears any more, until `give_back`: the caller's ends."""
        worker.num_abandoned += 1
        worker.count(1, now_s=self._count(1))

    def retire(self, worker: LaneWorker, actor: Any) -> None:  # noqa: ANN401 - Ray types no handle
        """End an actor, unless a call beside this one has done so and another is in its place."""
        if actor is None or worker.actor is not actor:
            return
        self._end(actor)
        self._waiting.unsettle(worker.number)
        worker.actor = None
        worker.is_up = False
        worker.last_key = None
        self._note(worker)

    def heed(
        self, worker: LaneWorker, *, answer: object = None, lost: str = "", tries: int = 1
    ) -> None:
        """Tell the ward of an answer or a loss; a worker that it gives up is lent no more."""
        if self._ward is None or worker.is_out:
            return
        if lost:
            if tries == 1:  # a second loss of one call may be that call's doing
                self._ward.lost(worker.number, lost)
        elif not self._ward.answered(worker.number, answer):
            self.give_up(worker.number)

    def give_up(self, number: int) -> None:
        """Lend a worker no more."""
        worker = self._workers[number]
        worker.is_out = True
        self._note(worker)
        self._dismiss_if_hopeless()

    def grow(self, size: int) -> None:
        """Have places for so many actors, if there are fewer; a new one starts with a call for it.

        Actors whose device has left keep their places: they wait for one to come.
        """
        for number in range(len(self._workers), size):
            worker = LaneWorker(number, None, is_up=False)
            self._workers.append(worker)
            self._note(worker)
            self._replace(worker)

    def load(self) -> LaneLoad:
        """Return how full the lane is now."""
        now_s = self._count(0)
        for worker in self._workers:
            worker.count(0, now_s=now_s)
        return LaneLoad(
            name=self._name,
            num_calls=self._num_calls,
            num_places=self.num_places,
            num_waiting=len(self._waiting),
            busy_s=self._busy_s,
            began_s=self._counted_s - self._began_s,
            worker_busy_s=tuple(worker.busy_s for worker in self._workers),
        )

    def close(self) -> None:
        """End the actors whose calls nobody waits for; busy ones go with the cluster."""
        for rising in self._rising:
            rising.cancel()
        for worker in self._workers:
            if worker.calls <= worker.num_abandoned:
                self.retire(worker, worker.actor)

    def _take(self, worker: LaneWorker, key: str) -> None:
        worker.last_key = key
        self._waiting.settle(worker.number, key)
        worker.count(1, now_s=self._count(1))
        self._note(worker)

    def _serve(self, worker: LaneWorker) -> None:
        """Lend a worker to those that wait, as far as it has places."""
        self._note(worker)
        while worker.is_up and not worker.is_out and worker.calls < self._depth:
            waiter = self._next_waiter(worker.number)
            if waiter is None:
                return
            key, lent = waiter
            self._take(worker, key)
            lent.set_result(worker)

    def _next_waiter(self, number: int | None) -> tuple[str, asyncio.Future[LaneWorker]] | None:
        waiter = self._waiting.take(worker=number)
        while waiter is not None and waiter[1].done():  # given up, and has yet to leave
            waiter = self._waiting.take(worker=number)
        return waiter

    def _replace(self, worker: LaneWorker) -> None:
        """Bring up a worker that died, if a call waits for which none is being brought up."""
        is_down = not (worker.is_up or worker.is_rising or worker.is_out)
        if is_down and len(self._rising) < len(self._waiting):
            self._bring_up(worker)

    def _bring_up(self, worker: LaneWorker) -> None:
        """Have a worker lent once its actor is up; calls are served by others until then."""
        if worker.actor is None:
            _LOG.info("%s-%d is started", self._name, worker.number)
            worker.actor = self._start(worker.number)
        worker.is_rising = True
        self._note(worker)
        rising = asyncio.get_running_loop().create_task(self._rise(worker, worker.actor))
        self._rising.add(rising)

    async def _rise(self, worker: LaneWorker, actor: Any) -> None:  # noqa: ANN401 - Ray types no handle
        """Wait for an actor, however long it takes to have a node for it, and lend it."""
        try:
            await actor.__ray_ready__.remote()
            if self._ward is not None and not await self._ward.admit(worker.number, actor):
                worker.is_out = True
            worker.is_up = True
        except (RayActorError, RayTaskError) as error:
            self.retire(worker, actor)
            waiter = self._next_waiter(None)
            if waiter is not None:
                waiter[1].set_exception(NotStarted(worker.number, str(error).splitlines()[0]))
        finally:
            worker.is_rising = False
            self._rising = {task for task in self._rising if task is not asyncio.current_task()}
            self._serve(worker)
            if not worker.is_up:  # others may wait beside the one that heard why
                asyncio.get_running_loop().call_soon(self._replace, worker)
            self._dismiss_if_hopeless()

    def _dismiss_if_hopeless(self) -> None:
        """Nobody waits for workers of which none will be lent again."""
        while all(worker.is_out for worker in self._workers):
            waiter = self._next_waiter(None)
            if waiter is None:
                return
            why = "none of its workers is to be trusted any more"
            waiter[1].set_exception(WorkerLost(self._name, why))

    def _note(self, worker: LaneWorker) -> None:
        """Have it found, or not, by the next call."""
        self._free.put(
            worker.number,
            calls=self._depth if worker.is_rising or worker.is_out else worker.calls,
            has_actor=worker.is_up,
            last_key=worker.last_key,
        )

    def _count(self, change: int) -> float:
        """Take in that calls began or ended; return when, on the monotonic clock."""
        now_s = time.monotonic()
        self._busy_s += self._num_calls * (now_s - self._counted_s)
        self._counted_s = now_s
        self._num_calls += change
        return now_s
