"""The programmer `openai`: any OpenAI-compatible endpoint behind the Programmer port."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kopt.actors.programmers.openai.account import usage_of
from kopt.actors.programmers.openai.answering import completions_of, note_of
from kopt.actors.programmers.openai.asking import Asker, Unanswered
from kopt.actors.programmers.openai.conversation import Body, Outcome, converse
from kopt.actors.programmers.openai.deadline import Deadline
from kopt.actors.programmers.openai.endpoint import make_client
from kopt.actors.programmers.openai.refusals import named_models, refusal
from kopt.actors.programmers.openai.reply import Reply, faulty
from kopt.actors.programmers.openai.sampling import request_body, sampling_of
from kopt.actors.programmers.openai.transport import exchange, list_models
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.actors.programmers.openai.turns import Turns
from kopt.actors.programmers.openai_access import access_of
from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.actors.programmers.registry import PROGRAMMERS, Workplace
from kopt.errors import ProgrammerRefused, ProgrammerUnavailable
from kopt.ports import AnalysisAnswer, AnalysisRequest, Answer, Completion, WriteRequest
from kopt.prompts import build
from kopt.prompts.analysis import AnalysisReading, build_analysis, read_analysis
from kopt.prompts.tool_offers import ToolOffers, offers_of


@PROGRAMMERS.register("openai")
class OpenAIProgrammer:
    """Asks a model for candidates; what it sends back is untrusted text."""

    name = "openai"

    def __init__(self, config: OpenAIConfig, workplace: Workplace) -> None:
        """Prepare the client; nothing is sent before the first request.

        Raises:
            ConfigError: no key for an endpoint that needs one, or another variable is missing.
        """
        self._config = config
        self._warn = workplace.warn
        self._access = access_of(config, os.environ)
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
        self._completions: Counter[str] = Counter()

    async def write(self, request: WriteRequest) -> Answer:
        """Write candidates (the Programmer port)."""
        deadline = Deadline(self._config.deadline_s)
        model = self._model or await self._find_model(deadline)
        messages = build(request)

        def body_of(index: int, num_choices: int = 1) -> Body:
            return request_body(
                self._config,
                model=model,
                messages=messages,
                seed=request.expansion.seed,
                index=index,
                num_choices=num_choices,
            )

        wanted = request.expansion.num_candidates
        offers = offers_of(request)
        if offers is not None:  # each completion calls what it wants
            bodies = [body_of(index) for index in range(wanted)]
            outcomes = await self._converse_beside(bodies, deadline, offers=offers)
        elif self._config.completions == "apart":
            bodies = [body_of(index) for index in range(wanted)]
            outcomes = await self._ask_beside(bodies, deadline)
        else:
            bodies = [body_of(0, wanted)]
            outcomes = [await self._ask(bodies[0], deadline)]
            missing = [body_of(index) for index in range(_num_written(outcomes[0], wanted), wanted)]
            if missing:
                self._warn_once(
                    f"the endpoint gives {wanted - len(missing)} of {wanted} completions asked for "
                    "together; programmer.completions=apart saves it one round"
                )
                bodies += missing
                outcomes += await self._ask_beside(missing, deadline)
        overflow = await self._check(outcomes)
        completions, candidates = completions_of(
            [self._reply(outcome) for outcome in outcomes],
            request=request,
            programmer=self.name,
            price=self._config.price,
        )
        self._count(completions)
        return Answer(
            candidates=candidates,
            exhausted=overflow,
            messages=messages,
            sampling=self._sampling(bodies, offers=offers),
            completions=completions,
            note=completions[0].fault if overflow else note_of(completions),
        )

    async def analyse(self, request: AnalysisRequest) -> AnalysisAnswer:
        """Condense a profile (the Analyst port)."""
        deadline = Deadline(self._config.deadline_s)
        messages = build_analysis(request)
        body = request_body(
            self._config,
            model=self._model or await self._find_model(deadline),
            messages=messages,
            seed=request.seed,
            index=0,
            num_choices=1,
        )
        outcome = await self._ask(body, deadline)
        await self._check([outcome])
        reply = self._reply(outcome)
        choice = reply.choices[0]
        reading = AnalysisReading(None, choice.fault)
        if not choice.fault:
            reading = read_analysis(choice.text)
        return AnalysisAnswer(
            analysis=reading.analysis,
            messages=messages,
            sampling=self._sampling([body]),
            completion=Completion(
                text=choice.text,
                finish=choice.finish,
                fault=reading.fault,
                usage=usage_of(reply.tokens, price=self._config.price),
            ),
        )

    async def close(self) -> None:
        """Close the connections, and say what was counted."""
        await self._client.close()
        retries, faulty_ones = self._asker.retries, self._completions["faulty"]
        if retries:
            kinds = ", ".join(f"{label}: {count}" for label, count in sorted(retries.items()))
            self._warn(
                f"programmer {self.name}: {self._asker.num_requests} requests, retries: "
                f"{retries.total()} ({kinds})"
            )
        if faulty_ones:
            self._warn(
                f"programmer {self.name}: {faulty_ones} of {self._completions.total()} answers "
                "held no candidate"
            )

    async def _ask(self, body: Body, deadline: Deadline) -> Outcome:
        send = partial(exchange, self._client, body, max_answer_bytes=self._config.max_answer_bytes)
        return await self._asker.ask(send, deadline=deadline)

    async def _ask_beside(self, bodies: Sequence[Body], deadline: Deadline) -> list[Outcome]:
        """Ask all at once, each with what is left of the deadline."""
        return await asyncio.gather(*(self._ask(body, deadline.copy()) for body in bodies))

    async def _converse_beside(
        self, bodies: Sequence[Body], deadline: Deadline, *, offers: ToolOffers
    ) -> list[Outcome]:
        """Have all conversations at once, each with what is left of the deadline."""

        async def one(body: Body) -> Outcome:
            own = deadline.copy()
            return await converse(
                lambda turn: self._ask(turn, own),
                body,
                offers=offers,
                max_calls=self._config.max_tool_calls,
            )

        return await asyncio.gather(*map(one, bodies))

    def _sampling(self, bodies: Sequence[Body], *, offers: ToolOffers | None = None) -> Body:
        sampling = sampling_of(bodies, url=self._access.url)
        if offers is not None:
            sampling["tools"] = list(offers.tools)
            sampling["max_tool_calls"] = self._config.max_tool_calls
        return sampling

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
            return faulty(f"the prompt does not fit the model's context ({reason})")
        return faulty(f"not answered: {reason}")

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

    def _count(self, completions: Sequence[Completion]) -> None:
        self._completions.update("faulty" if each.fault else "good" for each in completions)
        good = [each for each in completions if not each.fault]
        if good and not any(each.usage.tokens_out for each in completions):
            self._warn_once("the endpoint reports no tokens: they and their cost count as 0")

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(f"programmer {self.name}: {text}")


def _num_written(outcome: Outcome, wanted: int) -> int:
    """How many completions a request for several gave; all, if more would not come of asking."""
    if isinstance(outcome, Reply) and outcome.is_whole:
        return min(len(outcome.choices), wanted)
    return wanted
