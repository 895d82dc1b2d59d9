"""The requests of one expansion: N completions, together or apart, and those that are asked again.

Invariant: what came is kept, in the order of the completions, whatever else failed; requests made
to mend a completion come last.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from kopt.actors.programmers.openai.answering import is_cut
from kopt.actors.programmers.openai.conversation import Body, Outcome, converse
from kopt.actors.programmers.openai.deadline import Deadline
from kopt.actors.programmers.openai.reply import Choice, Reply
from kopt.actors.programmers.openai.sampling import request_body, sampling_of
from kopt.actors.programmers.openai.structured import Structured, structured_fields
from kopt.actors.programmers.openai.tool_desk import ToolTable
from kopt.actors.programmers.openai.truncation import asked_again
from kopt.actors.programmers.openai_config import ModelConfig
from kopt.ports import WriteRequest
from kopt.prompts import build
from kopt.prompts.budget import BUDGET

Ask = Callable[[Body, Deadline], Awaitable[Outcome]]
"""Sends one request until it is answered, within a deadline of its own."""


class ExpansionRequests:
    """Asks for an expansion's completions."""

    def __init__(
        self,
        config: ModelConfig,
        request: WriteRequest,
        *,
        model: str,
        structured: Structured,
        offers: ToolTable | None,
        ask: Ask,
    ) -> None:
        """Write the prompt; nothing is sent.

        Args:
            config: of the programmer.
            request: what is asked for.
            model: by its name at the endpoint.
            structured: how the form of an answer is held to.
            offers: tools that each completion may call; None for none.
            ask: sends one request.
        """
        self._config = config
        self._request = request
        self._model = model
        self._offers = offers
        self._send = ask
        self._wanted = request.expansion.num_candidates
        self._fields = structured_fields(structured, languages=request.target.languages)
        self.messages = build(
            request,
            budget=replace(BUDGET, tokens=config.prompt_tokens),
            form="fenced" if structured == "off" else "json",
        )
        """The prompt, as it is sent."""
        self.outcomes: list[Outcome] = []
        """What came."""
        self._bodies: list[Body] = []
        self._again: list[Body] = []

    @property
    def is_answered(self) -> bool:
        """Whether there is a reply at all."""
        return any(isinstance(outcome, Reply) for outcome in self.outcomes)

    async def ask(self, deadline: Deadline) -> int:
        """Ask for all completions; return how many of them had to be asked for apart.

        Those are missing where a server gives fewer than are asked for together.
        """
        if self._offers is not None or self._config.completions == "apart":
            await self._ask_beside([self._body(index) for index in range(self._wanted)], deadline)
            return 0
        together = self._body(0, num_choices=self._wanted)
        self._bodies.append(together)
        self.outcomes.append(await self._one(together, deadline))
        first = _num_written(self.outcomes[0], self._wanted)
        await self._ask_beside([self._body(each) for each in range(first, self._wanted)], deadline)
        return self._wanted - first

    async def mend_cut_ones(self, deadline: Deadline, *, programmer: str) -> Counter[str]:
        """Ask again for what was cut off at the token limit; return how it went, counted.

        Args:
            deadline: each completion has what is left of it.
            programmer: whom candidates name.

        Returns:
            Completions that were `mended`, and that were `lost`.
        """

        def cut(choice: Choice) -> bool:
            return is_cut(choice, request=self._request, programmer=programmer)

        async def mend(index: int) -> list[tuple[Body, Outcome]]:
            own = deadline.copy()
            return await asked_again(
                lambda body: self._one(body, own),
                self._body(index),
                limit_key=self._config.token_limit_key,
                is_cut=lambda reply: cut(reply.choices[0]),
            )

        # Beside replies of several choices, what failed stands for one.
        choices = [
            choice
            for outcome in self.outcomes
            for choice in (outcome.choices if isinstance(outcome, Reply) else (None,))
        ]
        cut_ones = [index for index, each in enumerate(choices) if each is not None and cut(each)]
        came = Counter[str]()
        for phases in await asyncio.gather(*map(mend, cut_ones)):
            self._again += [body for body, _ in phases]
            self.outcomes += [outcome for _, outcome in phases]
            last = phases[-1][1]
            is_whole = isinstance(last, Reply) and not (
                last.choices[0].fault or cut(last.choices[0])
            )
            came["mended" if is_whole else "lost"] += 1
        return came

    def sampling(self, *, url: str) -> dict[str, Any]:
        """Return what a journal keeps of the requests: all but the prompt."""
        sampling = sampling_of(self._bodies, url=url)
        if self._again:
            key = self._config.token_limit_key
            asked = self._bodies[0]["messages"]
            sampling["asked_again"] = [
                {key: body.get(key), "directive": body["messages"] != asked} for body in self._again
            ]
        if self._offers is not None:
            sampling["tools"] = list(self._offers.names)
            sampling |= self._offers.limits
        return sampling

    async def _ask_beside(self, bodies: Sequence[Body], deadline: Deadline) -> None:
        """Ask all at once, each with what is left of the deadline."""
        self._bodies += bodies
        self.outcomes += await asyncio.gather(
            *(self._one(body, deadline.copy()) for body in bodies)
        )

    async def _one(self, body: Body, deadline: Deadline) -> Outcome:
        if self._offers is None:
            return await self._send(body, deadline)
        return await converse(  # each completion calls what it wants
            lambda turn: self._send(turn, deadline),
            body,
            desk=self._offers.desk(),
        )

    def _body(self, index: int, *, num_choices: int = 1) -> Body:
        return self._fields | request_body(
            self._config,
            model=self._model,
            messages=self.messages,
            seed=self._request.expansion.seed,
            index=index,
            num_choices=num_choices,
        )


def _num_written(outcome: Outcome, wanted: int) -> int:
    """How many completions a request for several gave; all, if more would not come of asking."""
    if isinstance(outcome, Reply) and outcome.is_whole:
        return min(len(outcome.choices), wanted)
    return wanted
