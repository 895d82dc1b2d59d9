"""The programmer `openai`: any OpenAI-compatible endpoint behind the Programmer port."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from kopt.actors.programmers.openai.account import usage_of
from kopt.actors.programmers.openai.answering import Answered, completions_of, note_of
from kopt.actors.programmers.openai.asking import Asker, Unanswered
from kopt.actors.programmers.openai.conversation import Body, Outcome
from kopt.actors.programmers.openai.deadline import Deadline
from kopt.actors.programmers.openai.endpoint import make_client
from kopt.actors.programmers.openai.expansion_requests import ExpansionRequests
from kopt.actors.programmers.openai.extraction import extraction_answer, places_for_lessons
from kopt.actors.programmers.openai.refusals import named_models, refusal
from kopt.actors.programmers.openai.reply import Reply, faulty
from kopt.actors.programmers.openai.sampling import request_body, sampling_of
from kopt.actors.programmers.openai.structured import Structured, may_be_the_form
from kopt.actors.programmers.openai.tally import Tally, counted
from kopt.actors.programmers.openai.tool_desk import ToolTable
from kopt.actors.programmers.openai.toolroom import Toolroom
from kopt.actors.programmers.openai.transport import exchange, list_models
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.actors.programmers.openai.turns import Turns
from kopt.actors.programmers.openai_access import Access, access_of
from kopt.actors.programmers.openai_config import ModelConfig, OpenAIConfig
from kopt.actors.programmers.registry import PROGRAMMERS, Workplace
from kopt.environment import cache_dir
from kopt.errors import ProgrammerRefused, ProgrammerUnavailable
from kopt.ports import (
    AnalysisAnswer,
    AnalysisRequest,
    Answer,
    Completion,
    ExtractionAnswer,
    ExtractionRequest,
    Message,
    WriteRequest,
)
from kopt.prompts.analysis import AnalysisReading, build_analysis, read_analysis
from kopt.prompts.extraction import build_extraction


@PROGRAMMERS.register("openai")
class OpenAIProgrammer:
    """Asks a model for candidates; what it sends back is untrusted text."""

    name = "openai"

    def __init__(
        self, config: ModelConfig, workplace: Workplace, *, access: Access | None = None
    ) -> None:
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
        self._toolroom = Toolroom(
            config.tools,
            max_profile_calls=config.max_tool_calls,
            device=workplace.cluster.device,
            cache_dir=cache_dir(),
            warn=lambda text: workplace.warn(f"programmer {self.name}: {text}"),
        )
        self._model = config.model
        self._finding_model = asyncio.Lock()
        self._lessons = asyncio.Semaphore(places_for_lessons(config.max_concurrency))
        self._warned: set[str] = set()
        self._structured: Structured = config.structured
        self._tally = Tally()

    async def write(self, request: WriteRequest) -> Answer:
        """Write candidates (the Programmer port)."""
        deadline = Deadline(self._config.deadline_s)
        asked = await self._ask_for(request, deadline)
        overflow = await self._check(asked.outcomes)
        cut: Mapping[str, int] = {}
        if self._config.truncation == "two_phase" and self._config.max_tokens is not None:
            cut = await asked.mend_cut_ones(deadline, programmer=self.name)
        answered = completions_of(
            [self._reply(outcome) for outcome in asked.outcomes],
            request=request,
            programmer=self.name,
            price=self._config.price,
        )
        self._tally.add(answered, cut=cut)
        self._look_at_usage(answered)
        completions = tuple(answered.completions)
        return Answer(
            candidates=tuple(answered.candidates),
            exhausted=overflow,
            messages=asked.messages,
            sampling=asked.sampling(url=self._access.url),
            completions=completions,
            note=completions[0].fault if overflow else note_of(completions),
        )

    async def _ask_for(self, request: WriteRequest, deadline: Deadline) -> ExpansionRequests:
        """Ask for an expansion's completions, in the form that the endpoint takes."""
        model = self._model or await self._find_model(deadline)
        request = replace(request, manual=await self._toolroom.manual(request.target))
        structured = self._form_of(request, self._toolroom.table(request))

        async def ask(form: Structured) -> ExpansionRequests:
            asked = ExpansionRequests(
                self._config,
                request,
                model=model,
                structured=form,
                offers=self._toolroom.table(request),
                ask=self._ask,
            )
            apart, wanted = await asked.ask(deadline), request.expansion.num_candidates
            if apart:
                self._warn_once(
                    f"the endpoint gives {wanted - apart} of {wanted} completions asked for "
                    "together; programmer.completions=apart saves it one round"
                )
            return asked

        asked = await ask(structured)
        refused = next((each for each in asked.outcomes if may_be_the_form(each)), None)
        if structured == "off" or refused is None or asked.is_answered:
            return asked
        plain = await ask("off")
        if plain.is_answered:
            self._structured = "off"
            self._warn_once(
                f"the endpoint does not take programmer.structured={structured} "
                f"({self._access.redact(refused.reason)}); it is asked without from here on"
            )
        return plain

    def _form_of(self, request: WriteRequest, offers: ToolTable | None) -> Structured:
        """Return how the form of an answer is held to: one for all prompts of a search."""
        structured = self._structured
        if structured == "off" or (offers is None and request.telling.orchestration == "proactive"):
            return structured
        self._warn_once(
            f"programmer.structured={structured} is not used where a model may call tools"
        )
        return "off"

    async def analyse(self, request: AnalysisRequest) -> AnalysisAnswer:
        """Condense a profile (the Analyst port)."""
        messages = build_analysis(request)
        reply, body = await self._say(messages, seed=request.seed)
        choice = reply.choices[0]
        reading = AnalysisReading(None, choice.fault)
        if not choice.fault:
            reading = read_analysis(choice.text)
        return AnalysisAnswer(
            analysis=reading.analysis,
            messages=messages,
            sampling=sampling_of([body], url=self._access.url),
            completion=Completion(
                text=choice.text,
                finish=choice.finish,
                fault=reading.fault,
                usage=usage_of(reply.tokens, price=self._config.price),
            ),
        )

    async def extract(self, request: ExtractionRequest) -> ExtractionAnswer:
        """Draw lessons from an iteration (the Extractor port)."""
        messages = build_extraction(request)
        async with self._lessons:
            reply, body = await self._say(messages, seed=request.seed)
        return extraction_answer(
            reply,
            messages=messages,
            sampling=sampling_of([body], url=self._access.url),
            price=self._config.price,
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

    async def close(self) -> None:
        """Close the connections, and say what was counted."""
        await self._client.close()
        if called := self._toolroom.summary():
            self._warn(f"programmer {self.name}: {called}")
        retries = self._asker.retries
        if retries:
            self._warn(
                f"programmer {self.name}: {self._asker.num_requests} requests, retries: "
                f"{retries.total()} ({counted(retries)})"
            )
        for line in self._tally.lines():
            self._warn(f"programmer {self.name}: {line}")

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

    def _look_at_usage(self, answered: Answered) -> None:
        completions = answered.completions
        good = [each for each in completions if not each.fault]
        if good and not any(each.usage.tokens_out for each in completions):
            self._warn_once("the endpoint reports no tokens: they and their cost count as 0")

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(f"programmer {self.name}: {text}")
