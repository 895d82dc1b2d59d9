"""The pool: a fixed number of replicas, each kept up, and requests sent to those that are.

Invariants: a request is sent to one server at a time, and never to one that is known to be gone; a
server that ends is replaced until it has failed too often in a row; whoever waits for a server gets
one, or hears that there will be none. What becomes of a request whose server died is the asker's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import openai

from kopt.actors.programmers.vllm.figures import Figures
from kopt.actors.programmers.vllm.replica import Down, Up
from kopt.actors.programmers.vllm.router import Router
from kopt.actors.programmers.vllm.seat import Post, Seat
from kopt.actors.programmers.vllm_config import PoolConfig
from kopt.actors.quiet import Quiet
from kopt.errors import WorkerLost

STEADY_S = 600.0
"""A server that was up for so long is no longer in a row with the failures before it."""
MAX_BACKOFF_S = 60.0
PORT_TRIES = 3
"""Starts of a server whose free port another program took in the meantime."""


class Pool:
    """Keeps the replicas and lends them."""

    def __init__(
        self,
        config: PoolConfig,
        *,
        hire: Callable[[int], Post],
        connect: Callable[[Up], openai.AsyncOpenAI],
        quiet: Quiet,
        warn: Callable[[str], None],
    ) -> None:
        """Start the replicas; in a running loop.

        Args:
            config: the pool's section.
            hire: makes the replica of a number, 0 … replicas-1; again when its process is gone.
            connect: makes the client of a server.
            quiet: held while a server starts.
            warn: shows one line to the user.
        """
        self._config = config
        self._hire = hire
        self._connect = connect
        self._quiet = quiet
        self._warn = warn
        self._router = Router(slack=config.affinity_slack)
        self._changed = asyncio.Event()
        self.seats = [Seat(number=number, post=hire(number)) for number in range(config.replicas)]
        self._keeping = [asyncio.ensure_future(self._keep(seat)) for seat in self.seats]
        self._checks: set[asyncio.Task[None]] = set()

    async def ready(self) -> None:
        """Wait until there is a server to send to.

        Raises:
            WorkerLost: there is none, and there will be none.
        """
        while not any(seat.is_open for seat in self.seats):
            for task in self._keeping:
                if task.done() and not task.cancelled() and (error := task.exception()):
                    raise error  # a bug of ours; without it nothing would ever be ready
            if all(seat.lost or seat.is_retiring for seat in self.seats):
                lost = [seat.lost for seat in self.seats if seat.lost]
                raise WorkerLost("vllm", lost[0] if lost else "the pool is closed")
            self._changed.clear()
            await self._changed.wait()

    @asynccontextmanager
    async def lend(self, key: str) -> AsyncIterator[Seat]:
        """Give a server for one request, one that has the key's prefix cached if it is free.

        Raises:
            WorkerLost: see `ready`.
        """
        await self.ready()
        loads = {seat.number: seat.load for seat in self.seats if seat.is_open}
        seat = self.seats[self._router.choose(key, loads)]
        seat.load += 1
        seat.sent += 1
        try:
            yield seat
        finally:
            seat.load -= 1
            self._changed.set()

    def suspect(self, seat: Seat, up: Up | None) -> None:
        """Send nothing more to a server that met trouble until it is known to be well.

        Args:
            seat: of the request.
            up: its server when the request was sent; another one is above suspicion.
        """
        if seat.up is None or seat.up is not up or seat.is_suspect:
            return
        seat.is_suspect = True
        check = asyncio.ensure_future(self._clear(seat, seat.up))
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)

    async def retire(self, seat: Seat) -> None:
        """Send a replica no more, let it finish what it answers, and end it."""
        seat.is_retiring = True
        self._changed.set()
        deadline_s = time.monotonic() + self._config.drain_s
        while seat.load and seat.up and (left_s := deadline_s - time.monotonic()) > 0:
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left_s)
        keeping = self._keeping[seat.number]
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        if seat.up is not None:  # one that is still starting has nothing to end tidily
            seat.now = await seat.post.stop(self._config.drain_s) or seat.now
            await self._vacate(seat)
        seat.post.discard()

    async def close(self) -> None:
        """Retire every replica."""
        await asyncio.gather(*(self.retire(seat) for seat in self.seats))
        for check in self._checks:
            check.cancel()
        await asyncio.gather(*self._checks, return_exceptions=True)

    @property
    def figures(self) -> Figures:
        """Return the figures of all servers together, as last seen."""
        total = Figures()
        for seat in self.seats:
            total = total.plus(seat.figures)
        return total

    def to_json(self) -> dict[str, Any]:
        """Return what a run's record keeps of the pool."""
        return {
            "replicas": [seat.to_json() for seat in self.seats],
            "restarts": sum(max(0, seat.starts - 1) for seat in self.seats),
            "moved": self._router.moved,
            **self.figures.to_json(),
        }

    async def _keep(self, seat: Seat) -> None:
        """Have a server in a seat until it has failed too often in a row."""
        in_a_row, port_tries = 0, 0
        while True:
            async with AsyncExitStack() as stack:
                await self._quiet.hold(stack)  # on a CPU a start takes every core
                outcome = await seat.post.start()
            began_s = time.monotonic()
            if isinstance(outcome, Up):
                port_tries = 0
                await self._occupy(seat, outcome)
                down = await seat.post.wait()
                await self._vacate(seat)
            else:
                down = outcome
            if down.kind == "port" and self._config.port is None and port_tries < PORT_TRIES:
                port_tries += 1
                continue
            if time.monotonic() - began_s >= STEADY_S:
                in_a_row = 0
            in_a_row += 1
            if seat.starts == 0 or in_a_row > self._config.max_restarts:
                self._lose(seat, down, failures=in_a_row)
                return
            pause_s = min(self._config.restart_backoff_s * 2.0 ** (in_a_row - 1), MAX_BACKOFF_S)
            self._warn(
                f"server {seat.number} {down.reason}; it is started again in {pause_s:g} s "
                f"({in_a_row} of {self._config.max_restarts} in a row)"
            )
            await asyncio.sleep(pause_s)
            if seat.post.is_lost:
                seat.past, seat.now = seat.figures, Figures()
                seat.post.discard()
                seat.post = self._hire(seat.number)

    async def _occupy(self, seat: Seat, up: Up) -> None:
        seat.up, seat.client, seat.is_suspect = up, self._connect(up), False
        seat.starts += 1
        seat.first_up = seat.first_up or up
        self._changed.set()

    async def _vacate(self, seat: Seat) -> None:
        """Take a server that is gone out of use."""
        client, seat.up, seat.client, seat.is_suspect = seat.client, None, None, False
        seat.now = await seat.post.figures() or seat.now
        if client is not None:
            await client.close()

    def _lose(self, seat: Seat, down: Down, *, failures: int) -> None:
        """Give a seat up: it would fail for ever."""
        first = seat.starts == 0
        tried = "" if first else f" ({failures} failures in a row; programmer.vllm.max_restarts)"
        seat.lost = f"server {seat.number} {down.reason}{tried}"
        left = sum(1 for each in self.seats if not each.lost)
        if left:
            self._warn(f"{seat.lost}; the pool goes on with {left} of {len(self.seats)}")
        self._changed.set()

    async def _clear(self, seat: Seat, up: Up) -> None:
        """Look at a suspect until it is well or known to be gone."""
        while seat.up is up and not await seat.post.is_well():
            await asyncio.sleep(self._config.health_s)
        if seat.up is up:
            seat.is_suspect = False
            self._changed.set()
