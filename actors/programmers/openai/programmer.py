"""The programmer `openai`: any OpenAI-compatible endpoint behind the Programmer port."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from kopt.actors.programmers.openai.account import usage_of
from kopt.actors.programmers.openai.answering import Answered, completions_of, note_of
from kopt.actors.programmers.openai.deadline import Deadline
from kopt.actors.programmers.openai.expansion_requests import ExpansionRequests
from kopt.actors.programmers.openai.extraction import extraction_answer, places_for_lessons
from kopt.actors.programmers.openai.sampling import sampling_of
from kopt.actors.programmers.openai.speaker import Speaker
from kopt.actors.programmers.openai.structured import Structured, may_be_the_form
from kopt.actors.programmers.openai.tally import Tally
from kopt.actors.programmers.openai.tool_desk import ToolTable
from kopt.actors.programmers.openai.toolroom import Toolroom
from kopt.actors.programmers.openai_access import Access
from kopt.actors.programmers.openai_config import ModelConfig
from kopt.actors.programmers.registry import PROGRAMMERS, Workplace
from kopt.agent_call import AgentCall, AgentReply
from kopt.environment import cache_dir
from kopt.identity import derived_seed
from kopt.ports import (
    AnalysisAnswer,
    AnalysisRequest,
    Answer,
    Completion,
    ExtractionAnswer,
    ExtractionRequest,
    WriteRequest,
)
from kopt.prompts.analysis import AnalysisReading, build_analysis, read_analysis
from kopt.prompts.builder import reference_is_cut
from kopt.prompts.extraction import build_extraction


@PROGRAMMERS.register("openai")
class OpenAIProgrammer(Speaker):
    """Asks a model for candidates; what it sends back is untrusted text."""

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
        super().__init__(config, workplace, access=access)
        self._toolroom = Toolroom(
            config.tools,
            max_profile_calls=config.max_tool_calls,
            device=workplace.cluster.device,
            cache_dir=cache_dir(),
            warn=lambda text: workplace.warn(f"programmer {self.name}: {text}"),
        )
        self._lessons = asyncio.Semaphore(places_for_lessons(config.max_concurrency))
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
        self._tally.add(answered, cut=cut, reference_is_cut=reference_is_cut(asked.messages))
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

    async def say(self, call: AgentCall) -> AgentReply:
        """Answer one call of an agent (the Talker port)."""
        reply, body = await self._say(call.messages, seed=derived_seed(call.draw, *call.place))
        choice = reply.choices[0]
        return AgentReply(
            completion=Completion(
                text=choice.text,
                finish=choice.finish,
                fault=choice.fault,
                reasoning=choice.reasoning,
                usage=usage_of(reply.tokens, price=self._config.price),
                trace=choice.trace,
            ),
            sampling=sampling_of([body], url=self._access.url),
        )

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

    async def close(self) -> None:
        """Close the connections, and say what was counted."""
        await super().close()
        if called := self._toolroom.summary():
            self._warn(f"programmer {self.name}: {called}")
        for line in self._tally.lines():
            self._warn(f"programmer {self.name}: {line}")

    def _look_at_usage(self, answered: Answered) -> None:
        completions = answered.completions
        good = [each for each in completions if not each.fault]
        if good and not any(each.usage.tokens_out for each in completions):
            self._warn_once("the endpoint reports no tokens: they and their cost count as 0")
