"""A lane: a few Ray actors of one kind, lent a call or a few at a time, replaced when they die.

Invariant: an actor runs at most `depth` calls; a caller gets its answer, or WorkerLost after the
retries. Calls beside one that killed its actor are tried again as that one is. Which actor a call
gets, and when one is started, its places say (lane_places.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Literal

import ray
from ray.exceptions import RayActorError, RayTaskError

from kopt.actors.lane_errors import NotStarted, plain
from kopt.actors.lane_places import LanePlaces
from kopt.actors.lane_worker import LaneWorker
from kopt.actors.ward import Ward
from kopt.errors import KoptError, WorkerLost
from kopt.lane import LaneLoad

_LOG = logging.getLogger(__name__)
NODE_LOSSES = 10
"""Tries that one call may lose with their nodes: a machine that leaves is not the call's fault, but
one that takes every machine down may be."""
NODE_DIED = "node has died"
"""In Ray's words on an actor whose node is gone."""


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
        ward: Ward | None = None,
        keys: int = 1,
        end: Callable[[Any], None] = ray.kill,
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
            ward: says which actors are lent; None: all that are up.
            keys: that an actor is warm for at a time, >= 1.
            end: ends an actor.
        """
        self._name = name
        self._max_retries = max_retries
        self._limit_s = limit_s
        self._places = LanePlaces(
            name, start, size=size, started=started, depth=depth, ward=ward, keys=keys, end=end
        )
        self._abandoned: set[asyncio.Task[None]] = set()
        self._is_closed = False

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
        tries = with_nodes = 0
        while tries <= self._max_retries and with_nodes < NODE_LOSSES:
            try:
                worker = await self._places.lend(key)
            except NotStarted as error:
                name, lost = f"{self._name}-{error.number}", error.why
                tries += 1
                continue
            name = f"{self._name}-{worker.number}"
            queued_s = time.monotonic() - asked_s
            actor = worker.actor
            try:
                reference = getattr(actor, method).remote(*args)
                answer = await asyncio.wait_for(reference, self._limit_s)
                self._places.heed(worker, answer=answer)
                return answer, queued_s
            except RayActorError as error:
                lost = f"died: {str(error).splitlines()[0]}"
                if NODE_DIED in str(error):
                    with_nodes += 1
                else:
                    tries += 1
                    if worker.actor is actor:  # calls beside this one lost the same
                        self._places.heed(worker, lost=lost, tries=tries)
                self._places.retire(worker, actor)
            except RayTaskError as error:  # before TimeoutError: a method may raise that too
                cause = error.cause
                if isinstance(cause, KoptError):
                    raise plain(cause) from None
                # A bug of ours costs this call, not the fleet; the log has all of it.
                _LOG.exception("%s-%d: %s failed", self._name, worker.number, method)
                raise WorkerLost(
                    name,
                    f"{method} raised {type(cause).__name__}: {cause.args[:1]}",
                ) from None
            except TimeoutError:
                lost = f"did not answer within {self._limit_s:g} s"
                tries += 1
                self._places.heed(worker, lost=lost, tries=tries)
                self._places.retire(worker, actor)
            except asyncio.CancelledError:
                # It still runs in there; nobody will hear its answer.
                is_last = worker.calls - worker.num_abandoned <= 1
                if is_last or worker.actor is not actor:
                    self._places.retire(worker, actor)
                elif not self._is_closed:  # else nothing is waited for any more
                    self._abandon(worker, reference)
                raise
            finally:
                self._places.give_back(worker)
        raise WorkerLost(name, lost)

    async def beside(self, method: str, *args: object, key: str) -> None:
        """Run a method beside the calls of an actor: of one that works on `key`, if there is one.

        It takes no call's place, and nobody waits for it: where the actor dies, nothing is said.

        Raises:
            KoptError: whatever the method raised on purpose.
        """
        worker = self._places.beside(key)
        if worker is None:
            return
        try:
            await getattr(worker.actor, method).remote(*args)
        except RayTaskError as error:
            if isinstance(error.cause, KoptError):
                raise plain(error.cause) from None
            _LOG.exception("%s-%d: %s failed", self._name, worker.number, method)
        except RayActorError as error:
            _LOG.info("%s-%d: %s", self._name, worker.number, str(error).splitlines()[0])

    async def each(
        self, method: str, *args: object, among: Literal["all", "up"] = "all"
    ) -> list[Any]:
        """Run a method on every actor there is, in order of their numbers.

        One that died meanwhile gives no answer, and its place is empty.

        Args:
            method: of the actors.
            args: of the method.
            among: `up` leaves out those that are being started: one may wait for a node to join.
        """
        there = [each for each in self._places.there() if each.is_up or among == "all"]
        actors = [worker.actor for worker in there]
        answers = await asyncio.gather(
            *(getattr(actor, method).remote(*args) for actor in actors), return_exceptions=True
        )
        for worker, actor, answer in zip(there, actors, answers, strict=True):
            if isinstance(answer, RayActorError):
                self._places.retire(worker, actor)
            elif isinstance(answer, BaseException):
                raise answer
        return [answer for answer in answers if not isinstance(answer, RayActorError)]

    def grow(self, size: int) -> None:
        """Have places for so many actors, if there are fewer; a new one starts with a call for it.

        Actors whose device has left keep their places: they wait for one to come.
        """
        self._places.grow(size)

    def give_up(self, number: int) -> None:
        """Lend a worker no more."""
        self._places.give_up(number)

    @property
    def num_places(self) -> int:
        """Calls that can run at a time."""
        return self._places.num_places

    def load(self) -> LaneLoad:
        """Return how full the lane is now."""
        return self._places.load()

    def close(self) -> None:
        """Kill the actors whose calls nobody waits for; busy ones go with the cluster."""
        self._is_closed = True
        for abandoned in self._abandoned:
            abandoned.cancel()
        self._places.close()

    def _abandon(self, worker: LaneWorker, reference: Any) -> None:  # noqa: ANN401 - Ray types none
        """Let a call run on, since its actor has others: its place is free once it ends."""

        async def outlived() -> None:
            try:
                await asyncio.wait_for(reference, self._limit_s)
            except (RayActorError, RayTaskError, TimeoutError) as error:
                _LOG.debug("%s-%d: %s", self._name, worker.number, error)
            finally:
                worker.num_abandoned -= 1
                self._places.give_back(worker)

        self._places.keep(worker)  # in the place of the call that gives up
        task = asyncio.get_running_loop().create_task(outlived())
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)
