"""The programmer `vllm`: the programmer `openai`, asking a pool of servers of the run's own."""

from __future__ import annotations

import random
from contextvars import ContextVar
from functools import partial
from pathlib import Path

import openai

from kopt.actors.programmers.openai.asking import Asker
from kopt.actors.programmers.openai.conversation import Body, Outcome
from kopt.actors.programmers.openai.deadline import Deadline
from kopt.actors.programmers.openai.endpoint import make_client
from kopt.actors.programmers.openai.programmer import OpenAIProgrammer
from kopt.actors.programmers.openai.reply import Reply
from kopt.actors.programmers.openai.transport import exchange
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.actors.programmers.openai_access import Access
from kopt.actors.programmers.registry import PROGRAMMERS, Workplace
from kopt.actors.programmers.vllm.placing import Placement
from kopt.actors.programmers.vllm.pool import Pool
from kopt.actors.programmers.vllm.pool_turns import PoolTurns
from kopt.actors.programmers.vllm.replica import Up
from kopt.actors.programmers.vllm.serving import lines_of
from kopt.actors.programmers.vllm_ahead import check_model
from kopt.actors.programmers.vllm_config import VllmConfig
from kopt.agent_call import AgentCall, AgentReply
from kopt.errors import ProgrammerRefused, WorkerLost
from kopt.ports import Answer, WriteRequest

POOL = "vllm://pool"
"""What the journal names as the endpoint: which server it was does not matter."""
LOGS = "logs"
"""Folder in the run folder."""

_SEARCH: ContextVar[str] = ContextVar("search", default="")
"""Of the expansion whose requests are being sent, in whatever tasks: they share a prefix."""


@PROGRAMMERS.register("vllm")
class VllmProgrammer(OpenAIProgrammer):
    """Asks servers that it starts, keeps up and ends itself."""

    name = "vllm"

    def __init__(self, config: VllmConfig, workplace: Workplace) -> None:
        """Start the servers; requests wait until one of them answers.

        Raises:
            ConfigError: no model is named, or the cluster has not the GPUs for the pool.
        """
        check_model(config)
        super().__init__(config, workplace, access=_access(POOL))
        self._model = config.served_name
        self._keep_figures = workplace.keep_figures
        self._max_answer_bytes = config.max_answer_bytes
        wanted = config.vllm.device
        self._placement = Placement(
            workplace.cluster,
            config,
            device=workplace.cluster.device if wanted == "auto" else wanted,
            log_dir=Path(workplace.run_dir).resolve() / LOGS,
            is_local=workplace.cluster_config.address == "local",
        )

        def connect(up: Up) -> openai.AsyncOpenAI:
            return make_client(_access(up.url, key=up.key), connections=config.max_concurrency)

        self._pool = Pool(
            config.vllm,
            hire=self._placement.hire,
            connect=connect,
            quiet=workplace.quiet,
            warn=lambda line: self._warn(f"programmer {self.name}: {line}"),
        )
        self._asker = Asker(
            PoolTurns(
                self._pool,
                workplace.quiet,
                max_concurrency=config.max_concurrency,
                requests_per_minute=config.requests_per_minute,
            ),
            max_retries=config.max_retries,
            backoff_s=config.backoff_s,
            rng=random.Random(),
        )

    async def write(self, request: WriteRequest) -> Answer:
        """Write candidates (the Programmer port)."""
        _SEARCH.set(request.search)
        return await super().write(request)

    async def say(self, call: AgentCall) -> AgentReply:
        """Answer one call of an agent (the Talker port)."""
        _SEARCH.set(call.search)
        return await super().say(call)

    async def close(self) -> None:
        """End the servers, and say what was counted."""
        await self._pool.close()
        self._placement.give_back()
        await super().close()
        figures = self._pool.to_json()
        self._keep_figures({"programmer": self.name, "model": self._model, **figures})
        for line in lines_of(self._pool):
            self._warn(f"programmer {self.name}: {line}")

    async def _ask(self, body: Body, deadline: Deadline) -> Outcome:
        try:
            return await self._asker.ask(partial(self._send, body), deadline=deadline)
        except WorkerLost as error:
            raise ProgrammerRefused(self.name, error.why) from None

    async def _send(self, body: Body) -> Reply | Trouble:
        """Send a request once, to the server that suits its search."""
        async with self._pool.lend(_SEARCH.get()) as seat:
            up, client = seat.up, seat.client
            assert client is not None, "what is lent is up"
            outcome = await exchange(client, body, max_answer_bytes=self._max_answer_bytes)
        if isinstance(outcome, Trouble) and _may_be_its_end(outcome):
            self._pool.suspect(seat, up)
        return outcome

    async def _refusal(self, trouble: Trouble) -> ProgrammerRefused:
        why = f"a server of the pool refuses the request ({trouble.reason})"
        return ProgrammerRefused(self.name, why)


def _may_be_its_end(trouble: Trouble) -> bool:
    return trouble.label == "connection" or trouble.label.startswith("5")


def _access(url: str, *, key: str = "") -> Access:
    return Access(
        url=url,
        is_local=True,
        key_variable="",
        key=key,
        headers={},
        secrets=(key,) if key else (),
    )
