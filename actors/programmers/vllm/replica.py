"""A replica: one server process on one node, with the GPUs that its actor was given.

A plain class of coroutines; on a cluster it is an actor. What goes wrong with a server is a value,
never an exception: the pool decides what follows.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import openai

from kopt.actors.programmers.openai.transport import exchange
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.actors.programmers.vllm.command import server_command
from kopt.actors.programmers.vllm.ending import EndKind, ending_of
from kopt.actors.programmers.vllm.figures import Figures, read_figures
from kopt.actors.programmers.vllm.server import ServerProcess, free_port, is_taken
from kopt.actors.programmers.vllm.server_environment import server_environment
from kopt.actors.programmers.vllm_ahead import check_model, find_python
from kopt.actors.programmers.vllm_config import VllmConfig
from kopt.errors import ConfigError

LOOK_S = 0.5
"""Between two looks at a server that is starting."""
ANSWER_S = 10.0
"""For a health check or a page of figures."""
KILL_S = 5.0
"""Grace of a server that is hung or was never ready."""
GREETING = {"role": "user", "content": "Say a word."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """A server that answers."""

    url: str
    """Base URL of its API."""
    key: str = field(repr=False)
    """That requests must carry: other users of the host have no business here."""
    pid: int
    healthy_s: float
    """Seconds from its start until it said that it was well."""
    first_token_s: float
    """Seconds from its start until its first completion was there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """A server that is not there."""

    kind: EndKind | None
    """None: it was ended from outside or hung."""
    reason: str
    """One line."""


class Replica:
    """Starts a server and says what becomes of it."""

    def __init__(
        self, config: VllmConfig, *, number: int, host: str, device: str, log_dir: str
    ) -> None:
        """Take the order; nothing is started.

        Args:
            config: the programmer's section.
            number: of the replica, from 0.
            host: address that the server listens on.
            device: `cpu` or `cuda`.
            log_dir: where the server's output goes.
        """
        self._config = config
        self._number = number
        self._host = host
        self._device = device
        self._log = Path(log_dir) / f"vllm-{number}.log"
        self._server: ServerProcess | None = None
        self._root = ""
        self._past = Figures()
        self._now = Figures()

    async def start(self) -> Up | Down:
        """Start the server and wait until it has answered, or will not."""
        try:
            python = await asyncio.to_thread(find_python, self._config, os.environ)
            check_model(self._config)
        except ConfigError as error:
            return Down(kind="package", reason=str(error))
        pool = self._config.vllm
        port = free_port(self._host) if pool.port is None else pool.port + self._number
        if pool.port is not None and is_taken(self._host, port):
            return Down(
                kind="port",
                reason=f"conf programmer.vllm.port: expected port {port} to be free, found another "
                "program on it; name the first of a free range, or null for any",
            )
        self._past, self._now = self._past.plus(self._now), Figures()
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._root = f"http://{host}:{port}"
        key = secrets.token_urlsafe(24)
        server = self._server = ServerProcess(log=self._log)
        began_s = time.monotonic()
        try:
            await server.start(
                server_command(
                    self._config, python=python, host=self._host, port=port, device=self._device
                ),
                environment=server_environment(
                    pool, python=python, key=key, device=self._device, given=os.environ
                ),
            )
        except OSError as error:
            return Down(kind="other", reason=f"{self._log}: cannot start a server: {error}")
        ended = asyncio.ensure_future(server.ended())
        ready = asyncio.ensure_future(self._ready(key, began_s))
        try:
            async with asyncio.timeout(pool.start_s):
                await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            last = next((line for line in reversed(server.last_lines()) if line.strip()), "nothing")
            await server.stop(grace_s=KILL_S)
            return Down(
                kind="other",
                reason=f"expected an answer within programmer.vllm.start_s={pool.start_s:g} s of "
                f"its start, found none; give it longer, or read {self._log} (last: {last[:160]})",
            )
        finally:
            for each in (ended, ready):
                each.cancel()
                with suppress(asyncio.CancelledError):
                    await each
        if server.has_ended:
            return await self._ending()
        outcome = ready.result()
        if isinstance(outcome, Down):
            await server.stop(grace_s=KILL_S)
            return outcome
        healthy_s, first_token_s = outcome
        return Up(
            url=f"{self._root}/v1",
            key=key,
            pid=server.pid,
            healthy_s=healthy_s,
            first_token_s=first_token_s,
        )

    async def wait(self) -> Down:
        """Wait until the server has ended; one that is hung is ended here."""
        server = self._server
        assert server is not None, "started first"
        ended = asyncio.ensure_future(server.ended())
        well_s = time.monotonic()
        try:
            while True:
                done, _ = await asyncio.wait({ended}, timeout=self._config.vllm.health_s)
                if done:
                    return await self._ending()
                if await self.is_well():
                    well_s = time.monotonic()
                    await self.figures()
                silent_s = time.monotonic() - well_s
                if silent_s > self._config.vllm.hung_s:
                    await server.stop(grace_s=KILL_S)
                    return Down(kind=None, reason=f"hung: not well for {silent_s:.0f} s")
        finally:
            ended.cancel()

    async def is_well(self) -> bool:
        """Return whether the server says that it is well."""
        return await self._get("/health") is not None

    async def figures(self) -> Figures:
        """Return the figures of this replica's servers so far, the dead ones included."""
        page = await self._get("/metrics")
        if page is not None:
            with suppress(ValueError):
                self._now = read_figures(page).after(self._now)
        return self._past.plus(self._now)

    async def stop(self, grace_s: float) -> Figures:
        """End the server; return its last figures."""
        last = await self.figures()
        if self._server is not None:
            await self._server.stop(grace_s=grace_s)
        return last

    async def _ready(self, key: str, began_s: float) -> tuple[float, float] | Down:
        """Return when the server was well and when it had answered, in seconds from its start."""
        while not await self.is_well():
            await asyncio.sleep(LOOK_S)
        healthy_s = time.monotonic() - began_s
        body = {
            "model": self._config.served_name,
            "messages": [GREETING],
            "max_tokens": 1,
            "logprobs": self._config.logprobs,  # the first such request takes seconds longer
        }
        client = openai.AsyncOpenAI(
            api_key=key, base_url=f"{self._root}/v1", max_retries=0, http_client=_local_client()
        )
        async with client:
            outcome = await exchange(client, body, max_answer_bytes=10_000)
        if isinstance(outcome, Trouble):
            reason = f"it is well, but refuses a request ({outcome.reason}); log: {self._log}"
            return Down(kind="other", reason=reason)
        return healthy_s, time.monotonic() - began_s

    async def _get(self, path: str) -> str | None:
        """Return a page of the server; None where it has none to give."""
        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"{self._root}{path}") as response,
            ):
                return await response.text() if response.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None

    async def _ending(self) -> Down:
        assert self._server is not None
        code = await self._server.ended()
        ending = ending_of(code, self._server.last_lines(), log=str(self._log))
        return Down(kind=ending.kind, reason=ending.reason)


def _local_client() -> openai.DefaultAsyncHttpxClient:
    return openai.DefaultAsyncHttpxClient(trust_env=False)
