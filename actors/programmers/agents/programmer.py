"""The Programmer port over several roles (KernelOPT §4.2, App. A), each played by one talker.

| asked for | who |
| --- | --- |
| a version from ROOT | codegen, from the reference; fusion, where it is what several kernels do |
| a change of a right version | planner, then executor |
| a mended version | whoever wrote it, in the same conversation: its K retries are the search's |
| the lessons of an iteration | summarizer |

The profiler and the analyst's tiers are deterministic, and elsewhere: the driver profiles what is
expanded, `kopt.tools` classifies it. Plans of one expansion are made one after another, each told
of those before it; programs are written side by side. Invariant: what was paid for is not lost: an
expansion of which anything was answered has an answer, and a sitting that ends in the middle of one
goes on with what the journal has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kopt.actors.programmers.agents.idea import Idea
from kopt.actors.programmers.agents.planning import make_plan
from kopt.actors.programmers.agents.tally import AgentTally
from kopt.actors.programmers.agents.writing import Desk, Written, carry_out, mend, write_program
from kopt.actors.programmers.agents_config import AgentsConfig
from kopt.agent_call import AgentCall, Author, CallDesk, CallPlace, Talker
from kopt.candidate import Candidate
from kopt.compiled.families import SEVERAL_KERNELS
from kopt.errors import ProgrammerUnavailable, WorkerLost
from kopt.ports import (
    AnalysisAnswer,
    AnalysisRequest,
    Analyst,
    Answer,
    Completion,
    ExtractionAnswer,
    ExtractionRequest,
    Programmer,
    WriteRequest,
)
from kopt.prompts.agent_author import author_prompt
from kopt.prompts.agent_summary import read_summary, summary_prompt
from kopt.prompts.extraction import ExtractionReading

Outcome = Written | ProgrammerUnavailable | WorkerLost
MAX_NOTE = 400
"""Characters of an answer's note."""


class AgentsProgrammer:
    """Several roles that write, plan and learn; what they say is untrusted text."""

    def __init__(
        self,
        inner: Programmer,
        talker: Talker,
        config: AgentsConfig,
        *,
        warn: Callable[[str], None],
    ) -> None:
        """Take the parts; a desk comes with the run.

        Args:
            inner: the programmer that is asked; closed with this one.
            talker: the same, as it answers in words.
            config: bounds of the roles.
            warn: shows one line to the user.
        """
        self.name = inner.name
        self.tally = AgentTally()
        """Of this sitting."""
        self._inner = inner
        self._talker = talker
        self._config = config
        self._warn = warn
        self._desk: CallDesk | None = None

    def sit_at(self, desk: CallDesk) -> None:
        """Take the desk of the run (the port)."""
        self._desk = desk

    async def write(self, request: WriteRequest) -> Answer:
        """Write candidates (the Programmer port)."""
        assert self._desk is not None, "the driver gives a desk first"
        ideas = [
            Idea(request, slot=slot, desk=self._desk, say=self._talker.say, tally=self.tally)
            for slot in range(request.expansion.num_candidates)
        ]
        match request.expansion.mode:
            case "initial":
                outcomes = await _all([partial(self._from_reference, idea) for idea in ideas])
            case "debug":
                past = self._desk.past(request.search, candidate=request.expansion.parent or "")
                desk = self._as("executor")
                outcomes = await _all([partial(mend, idea, past, desk=desk) for idea in ideas])
            case "optimize":
                outcomes = await self._from_plans(ideas)
        return _answer(ideas, outcomes)

    async def extract(self, request: ExtractionRequest) -> ExtractionAnswer:
        """Draw lessons from an iteration, as the summarizer (the Extractor port)."""
        messages = summary_prompt(request, tokens=self._config.tokens.summarizer)
        call = AgentCall(
            place=CallPlace(request.iteration.expansion, "summarizer", 0, 0),
            problem=request.problem,
            search=request.search,
            seed=request.search_seed,
            draw=request.seed,
            messages=messages,
        )
        reply = await self._talker.say(call)  # the memory's update is what the journal keeps
        self.tally.add("summarizer", reply)
        said = reply.completion
        reading = ExtractionReading(None, said.fault)
        if not said.fault:
            reading = read_summary(said.text)
        return ExtractionAnswer(
            entries=reading.entries,
            messages=messages,
            sampling=reply.sampling,
            completion=replace(said, fault=reading.fault),
        )

    async def analyse(self, request: AnalysisRequest) -> AnalysisAnswer:
        """Condense a profile (the Analyst port)."""
        assert isinstance(self._inner, Analyst), "the configuration allows only what can analyse"
        return await self._inner.analyse(request)

    async def close(self) -> None:
        """Close the programmer behind."""
        await self._inner.close()

    def say_figures(self) -> None:
        """Tell what each role asked and cost in this sitting."""
        for line in self.tally.lines():
            self._warn(f"pipeline agents: {line}")

    async def _from_reference(self, idea: Idea) -> Written:
        request = idea.request
        is_fused = request.problem.family == SEVERAL_KERNELS
        author: Author = "fusion" if is_fused else "codegen"
        desk = self._as(author)
        messages = author_prompt(
            request,
            author=author,
            plan=None,
            idea=idea.number,
            tokens=desk.tokens,
            libraries=self._config.libraries,
        )
        return await write_program(idea, messages, desk=desk)

    async def _from_plans(self, ideas: Sequence[Idea]) -> list[Outcome]:
        assert self._desk is not None, "it was there when the expansion began"
        request = ideas[0].request
        earlier = self._desk.strategies(request.search, expansion=request.expansion.ordinal)
        outcomes: dict[int, Outcome] = {}
        work: dict[int, Callable[[], Coroutine[Any, Any, Written]]] = {}
        directions: list[str] = []
        for idea in ideas:
            try:
                plan = await make_plan(idea, self._config, beside=directions, earlier=earlier)
            except (ProgrammerUnavailable, WorkerLost) as error:
                outcomes[idea.slot] = error
                continue
            if isinstance(plan, str):
                lost = Completion(text="", fault=plan, usage=idea.usage)
                outcomes[idea.slot] = Written(candidate=None, completion=lost)
                continue
            directions.append(plan.direction)
            work[idea.slot] = partial(carry_out, idea, plan, desk=self._as("executor"))
        outcomes.update(zip(work, await _all(list(work.values())), strict=True))
        return [outcomes[idea.slot] for idea in ideas]

    def _as(self, author: Author) -> Desk:
        return Desk(
            author=author,
            tokens=getattr(self._config.tokens, author),
            resubmissions=self._config.resubmissions,
            programmer=self.name,
        )


async def _all(work: Sequence[Callable[[], Coroutine[Any, Any, Written]]]) -> list[Outcome]:
    """Do all side by side; what one could not be answered for now is its outcome.

    Raises:
        AnswerAwaited: an answer comes later; the others' calls are kept.
        StoreError: the journal cannot be written.
    """
    done = await asyncio.gather(*(each() for each in work), return_exceptions=True)
    outcomes: list[Outcome] = []
    for each in done:
        if isinstance(each, BaseException) and not isinstance(
            each, ProgrammerUnavailable | WorkerLost
        ):
            raise each
        outcomes.append(each)
    return outcomes


def _answer(ideas: Sequence[Idea], outcomes: Sequence[Outcome]) -> Answer:
    """Put the ideas together, in the order of their slots.

    Raises:
        ProgrammerUnavailable: nothing was answered, and nobody can answer.
        WorkerLost: likewise.
    """
    failures = [each for each in outcomes if not isinstance(each, Written)]
    if failures and not any(idea.num_heard for idea in ideas):
        raise failures[0]
    completions: list[Completion] = []
    candidates: dict[str, Candidate] = {}
    places: dict[str, int] = {}
    for idea, outcome in zip(ideas, outcomes, strict=True):
        if not isinstance(outcome, Written):
            fault = f"not answered: {outcome}"
            completions.append(Completion(text="", fault=fault, usage=idea.usage))
            continue
        completion, candidate = outcome.completion, outcome.candidate
        if candidate is not None:
            key = candidate.candidate_id
            twin = places.setdefault(key, idea.slot)
            if twin != idea.slot:
                completion = replace(completion, fault=f"same as idea {twin}")
            candidates.setdefault(key, candidate)
        completions.append(completion)
    faults = list(dict.fromkeys(each.fault for each in completions if each.fault))
    # A prompt is kept with its answer where there is one of each; the journal has every call.
    alone = outcomes[0] if len(outcomes) == 1 else None
    return Answer(
        candidates=tuple(candidates.values()),
        messages=alone.messages if isinstance(alone, Written) else (),
        sampling={"pipeline": "agents"},
        completions=tuple(completions),
        note="; ".join(faults)[:MAX_NOTE],
    )
