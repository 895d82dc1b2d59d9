"""One endpoint, as a programmer speaks with it: a request in, a reply without secrets out.

Invariant: what comes from the endpoint is untrusted, and leaves here without the secrets that were
sent to it; what was not answered is an error of the port, or, beside what was, a faulty reply.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kopt.actors.programmers.openai.asking import Asker, Unanswered
from kopt.actors.programmers.openai.conversation import Body, Outcome
from kopt.actors.programmers.openai.deadline import Deadline
from kopt.actors.programmers.openai.endpoint import make_client
from kopt.actors.programmers.openai.refusals import named_models, refusal
from kopt.actors.programmers.openai.reply import Reply, faulty
from kopt.actors.programmers.openai.sampling import request_body
from kopt.actors.programmers.openai.tally import counted
from kopt.actors.programmers.openai.transport import exchange, list_models
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.actors.programmers.openai.turns import Turns
from kopt.actors.programmers.openai_access import Access, access_of
from kopt.actors.programmers.openai_config import ModelConfig, OpenAIConfig
from kopt.actors.programmers.registry import Workplace
from kopt.errors import ProgrammerRefused, ProgrammerUnavailable
from kopt.ports import Message


class Speaker:
    """Sends what a programmer asks; the base of those that ask a model."""

    name = "openai"

    def __init__(self, config: ModelConfig, workplace: Workplace, *, access: Access | None) -> None:
        """Prepare the client; nothing is sent before the first request.

        Args:
            config: the programmer's section.
            workplace: of the fleet.
            access: of servers that the section does not name; None: it is an OpenAIConfig.

        Raises:
            ConfigError: no key for an endpoint that needs one, or another variable is missing.
        """
        self._config = config
        self._warn = workplace.warn
        if access is None:
            assert isinstance(config, OpenAIConfig), "else access is given"
            access = access_of(config, os.environ)
        self._access = access
        self._client = make_client(self._access, connections=config.max_concurrency)
        self._asker = Asker(
            Turns(
                max_concurrency=config.max_concurrency,
                requests_per_minute=config.requests_per_minute,
            ),
            max_retries=config.max_retries,
            backoff_s=config.backoff_s,
            rng=random.Random(),
        )
        self._model = config.model
        self._finding_model = asyncio.Lock()
        self._warned: set[str] = set()

    async def close(self) -> None:
        """Close the connections, and say what had to be sent again."""
        await self._client.close()
        if retries := self._asker.retries:
            self._warn(
                f"programmer {self.name}: {self._asker.num_requests} requests, retries: "
                f"{retries.total()} ({counted(retries)})"
            )

    async def _say(self, messages: Sequence[Message], *, seed: int) -> tuple[Reply, Body]:
        """Return one completion of a prompt that is no expansion's, and its request.

        Raises:
            ProgrammerUnavailable: it was not answered.
        """
        deadline = Deadline(self._config.deadline_s)
        body = request_body(
            self._config,
            model=self._model or await self._find_model(deadline),
            messages=messages,
            seed=seed,
            index=0,
            num_choices=1,
        )
        outcome = await self._ask(body, deadline)
        await self._check([outcome])
        return self._reply(outcome), body

    async def _ask(self, body: Body, deadline: Deadline) -> Outcome:
        send = partial(exchange, self._client, body, max_answer_bytes=self._config.max_answer_bytes)
        return await self._asker.ask(send, deadline=deadline)

    async def _check(self, outcomes: Sequence[Outcome]) -> bool:
        """Return whether the prompt is too long, if nothing came; what came is never thrown away.

        Raises:
            ProgrammerRefused: it will never be answered.
            ProgrammerUnavailable: it was not answered.
        """
        if any(isinstance(outcome, Reply) for outcome in outcomes):
            return False
        troubles = [outcome for outcome in outcomes if isinstance(outcome, Trouble)]
        if any(trouble.kind == "overflow" for trouble in troubles):
            return True
        if troubles:
            raise await self._refusal(troubles[0])
        raise self._unavailable(next(o for o in outcomes if isinstance(o, Unanswered)))

    def _reply(self, outcome: Outcome) -> Reply:
        """What was not answered, beside what was, is a completion with that fault.

        What came holds no secret either: there are gateways whose pages repeat a request's headers.
        """
        redact = self._access.redact
        if isinstance(outcome, Reply):
            choices = tuple(
                replace(each, text=redact(each.text), fault=redact(each.fault))
                for each in outcome.choices
            )
            return replace(outcome, choices=choices)
        reason = redact(outcome.reason)
        if isinstance(outcome, Trouble) and outcome.kind == "overflow":
            fault = f"the prompt does not fit the model's context ({reason})"
            return faulty(fault, kind="unanswered")
        return faulty(f"not answered: {reason}", kind="unanswered")

    async def _refusal(self, trouble: Trouble) -> ProgrammerRefused:
        return await refusal(
            trouble, access=self._access, client=self._client, programmer=self.name
        )

    def _unavailable(self, outcome: Unanswered) -> ProgrammerUnavailable:
        why = f"{self._access.url}: {outcome.reason}"
        return ProgrammerUnavailable(self.name, self._access.redact(why))

    async def _find_model(self, deadline: Deadline) -> str:
        """Return the only model that the endpoint lists; asked for once.

        Raises:
            ProgrammerRefused: it lists none or several.
            ProgrammerUnavailable: it does not answer.
        """
        async with self._finding_model:
            if self._model is not None:
                return self._model
            names = await self._asker.ask(partial(list_models, self._client), deadline=deadline)
            if isinstance(names, Unanswered):
                raise self._unavailable(names)
            if isinstance(names, Trouble):
                raise await self._refusal(names)
            if len(names) != 1:
                listed = f"lists {named_models(names)}" if names else "lists no models"
                raise ProgrammerRefused(
                    self.name, f"{self._access.url} {listed}: set programmer.model"
                )
            self._model = names[0]
            return self._model

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(f"programmer {self.name}: {text}")
