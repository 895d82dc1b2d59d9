"""The life of one expansion: written, made, judged, told, profiled.

Each step is journalled before its effect: the answer before it is used, the verdict before the
tree hears of it. A step that the journal already has is not done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from kopt.candidate import Candidate
from kopt.data.answers import answer_from_text
from kopt.data.results import DEVICE_STAGES
from kopt.driver.kept_answers import keep_answer
from kopt.driver.limits import Spent
from kopt.driver.memories import Memories
from kopt.driver.order import Step
from kopt.driver.profiles import Profiles
from kopt.driver.task import SearchTask, Unfinished
from kopt.driver.verdicts import SharedVerdicts
from kopt.errors import (
    AnswerAwaited,
    ProblemError,
    ProgrammerRefused,
    ProgrammerUnavailable,
    WorkerLost,
)
from kopt.evaluation import Evaluation, to_json
from kopt.events import (
    CandidateMade,
    ExpansionCancelled,
    Told,
    VerdictReached,
)
from kopt.expansion import Expansion
from kopt.ports import (
    Answer,
    Evaluator,
    EventSink,
    Programmer,
    Target,
    Telling,
    Terms,
    WriteRequest,
)
from kopt.reward import with_energy
from kopt.search.telling import tell_candidate

MAX_SETBACKS = 3
"""Expansions cancelled in a row (no programmer, no worker) after which a search gives up."""
MAX_EMPTY = 8
"""Expansions in a row that were answered without a candidate (words alone, a refusal, a pass) after
which it gives up too. Three would be few: where one answer in four is such, three in ten searches
of thirty expansions meet three in a row."""

Setback = ProgrammerUnavailable | WorkerLost


class ExpansionLife:
    """What happens to an expansion from the moment it was asked."""

    def __init__(
        self,
        *,
        programmer: Programmer,
        evaluator: Evaluator,
        sink: EventSink,
        target: Target,
        terms: Terms,
        telling: Telling,
        verdicts: SharedVerdicts,
        profiles: Profiles,
        memories: Memories,
        in_slot_order: bool,
        spent: Spent,
        on_change: Callable[[SearchTask], None],
    ) -> None:
        """Take the parts; `on_change` is called whenever a tree heard something."""
        self._programmer = programmer
        self._evaluator = evaluator
        self._sink = sink
        self._target = target
        self._terms = terms
        self._telling = telling
        self._verdicts = verdicts
        self._profiles = profiles
        self._memories = memories
        self._in_slot_order = in_slot_order
        self._spent = spent
        self._on_change = on_change

    async def run(
        self, task: SearchTask, expansion: Expansion, unfinished: Unfinished | None
    ) -> None:
        """Tell or cancel every slot of the expansion.

        One whose answer is awaited is neither: the journal has it as asked, and a later sitting
        goes on with it as with one whose driver died.

        Raises:
            StoreError: the journal cannot be written; the fleet must stop.
        """
        try:
            answer = await self._answer(task, expansion, unfinished)
        except AnswerAwaited:
            task.awaiting += 1
            return
        except ProblemError as error:
            await self._give_up(task, expansion, error)
            return
        except (ProgrammerUnavailable, WorkerLost) as error:
            await self._set_back(task, expansion, error)
            return
        candidates = answer.candidates[: expansion.num_candidates]
        made = self._make(task, expansion, candidates, unfinished)
        failure = await self._judge_all(task, expansion, candidates, made, unfinished)
        if isinstance(failure, ProblemError):
            await self._give_up(task, expansion, failure)
        elif failure is not None:
            await self._set_back(task, expansion, failure)
        elif answer.exhausted or len(candidates) < expansion.num_candidates:
            reason = answer.note or f"{len(candidates)} of {expansion.num_candidates} written"
            task.note = reason
            await self._cancel(task, expansion, reason, exhausted=answer.exhausted)
            task.setbacks = 0  # somebody answered
            task.empty = 0 if candidates or answer.exhausted else task.empty + 1
            self._check_setbacks(task, reason)
        else:
            task.setbacks = task.empty = 0
        await self._memories.over(task, expansion, answer)

    async def _answer(
        self, task: SearchTask, expansion: Expansion, unfinished: Unfinished | None
    ) -> Answer:
        spec = task.spec
        if unfinished is not None and unfinished.answer is not None:
            answer = answer_from_text(self._sink.get_text(unfinished.answer))
            self._keep(answer, spec.name, expansion, first=unfinished.num_completions)
            return answer
        memory, history = self._memories.recall(task, expansion)
        answer = await self._programmer.write(
            WriteRequest(
                problem=spec.problem,
                target=self._target,
                search=spec.name,
                arm=spec.arm,
                seed=spec.seed,
                expansion=expansion,
                parent=await self._profiles.parent(task, expansion),
                terms=self._terms,
                telling=self._telling,
                memory=memory,
                history=history,
            )
        )
        self._keep(answer, spec.name, expansion)
        return answer

    def _keep(self, answer: Answer, search: str, expansion: Expansion, *, first: int = 0) -> None:
        keep_answer(answer, search=search, expansion=expansion, sink=self._sink, first=first)
        for completion in answer.completions[first:]:
            self._spent.add(completion.usage)

    def _make(
        self,
        task: SearchTask,
        expansion: Expansion,
        candidates: tuple[Candidate, ...],
        unfinished: Unfinished | None,
    ) -> list[CandidateMade]:
        events = []
        for index, candidate in enumerate(candidates):
            made = CandidateMade(
                candidate=candidate.candidate_id,
                expansion=expansion.ordinal,
                index=index,
                source=self._sink.put_text(candidate.source),
                language=candidate.language,
                parent=candidate.parent,
                strategy=candidate.strategy,
                programmer=candidate.programmer,
            )
            events.append(made)
            if unfinished is None or index not in unfinished.made:
                self._sink.append(task.spec.name, made)
        return events

    async def _judge_all(
        self,
        task: SearchTask,
        expansion: Expansion,
        candidates: tuple[Candidate, ...],
        made: list[CandidateMade],
        unfinished: Unfinished | None,
    ) -> ProblemError | Setback | None:
        """Judge and tell every candidate; return the first failure that was not a candidate's."""
        told = unfinished.told if unfinished is not None else frozenset()
        journalled = unfinished.verdicts if unfinished is not None else {}

        async def profile(index: int, evaluation: Evaluation) -> None:
            await self._profiles.after_telling(task, candidates[index], made[index], evaluation)

        async def one(index: int) -> tuple[Evaluation, float | None]:
            candidate, event = candidates[index], made[index]
            evaluation = journalled.get(index)
            if evaluation is None:
                evaluation = await self._judge(task, candidate, event)
            energy = await self._profiles.energy_reduction(task, candidate, event, evaluation)
            if not self._in_slot_order:
                await self._tell(task, event, evaluation, energy_reduction=energy)
                await profile(index, evaluation)
            return evaluation, energy

        open_slots = [index for index in range(len(candidates)) if index not in told]
        outcomes = await asyncio.gather(*map(one, open_slots), return_exceptions=True)
        failures = [
            outcome
            for outcome in outcomes
            if isinstance(outcome, ProblemError | ProgrammerUnavailable | WorkerLost)
        ]
        reached: dict[int, tuple[Evaluation, float | None]] = {}
        for index, outcome in zip(open_slots, outcomes, strict=True):
            if isinstance(outcome, tuple):
                reached[index] = outcome
            elif outcome not in failures:
                raise outcome
        if self._in_slot_order:
            # A recording's own order, where one is played, stands above that of the slots.
            slots = sorted(reached)
            for index in slots if task.order is None else task.order.sort(expansion, slots):
                evaluation, energy = reached[index]
                await self._tell(task, made[index], evaluation, energy_reduction=energy)
            for index in slots:
                await profile(index, reached[index][0])
        return failures[0] if failures else None

    async def _judge(
        self, task: SearchTask, candidate: Candidate, event: CandidateMade
    ) -> Evaluation:
        problem = task.spec.problem
        evaluation, cached = await self._verdicts.get(
            (problem.problem_id, event.candidate),
            lambda: self._evaluator.evaluate(problem, candidate),
        )
        if cached:  # nothing was run for this slot
            evaluation = replace(evaluation, timeline_s={})
        self._profiles.evaluated(evaluation)
        self._spent.used_device(_device_seconds(evaluation))
        self._sink.append(
            task.spec.name,
            VerdictReached(
                candidate=event.candidate,
                expansion=event.expansion,
                index=event.index,
                cached=cached or evaluation.is_handed_on,
                eval=to_json(evaluation),
            ),
        )
        return evaluation

    async def _tell(
        self,
        task: SearchTask,
        made: CandidateMade,
        evaluation: Evaluation,
        *,
        energy_reduction: float | None,
    ) -> None:
        step = Step(Told.kind, made.expansion, made.index)
        if task.order is not None:
            await task.order.turn(step)
        task.remember(made, evaluation)
        told = tell_candidate(
            task.tree,
            made.expansion,
            made.index,
            candidate=made.candidate,
            verdict=with_energy(evaluation.verdict, energy_reduction),
            strategy=made.strategy,
        )
        self._sink.append(
            task.spec.name,
            Told(
                expansion=made.expansion,
                index=made.index,
                node=told.node,
                reward=told.reward,
                energy_reduction=energy_reduction,
            ),
        )
        if task.order is not None:
            task.order.took(step)
        self._on_change(task)

    async def _cancel(
        self, task: SearchTask, expansion: Expansion, reason: str, *, exhausted: bool = False
    ) -> None:
        step = Step(ExpansionCancelled.kind, expansion.ordinal)
        if task.order is not None:
            await task.order.turn(step)
        self._sink.append(
            task.spec.name,
            ExpansionCancelled(expansion=expansion.ordinal, exhausted=exhausted, reason=reason),
        )
        task.tree.cancel(expansion.ordinal, exhausted=exhausted)
        if task.order is not None:
            task.order.took(step)
        self._on_change(task)

    async def _give_up(self, task: SearchTask, expansion: Expansion, error: ProblemError) -> None:
        await self._cancel(task, expansion, str(error))
        task.stop_reason = f"failed: {error}"
        task.failed = True

    async def _set_back(self, task: SearchTask, expansion: Expansion, error: Setback) -> None:
        await self._cancel(task, expansion, str(error))
        task.setbacks += 1
        if isinstance(error, ProgrammerRefused):
            task.stop_reason = f"failed: {error}"
            task.failed = True
        self._check_setbacks(task, str(error))

    def _check_setbacks(self, task: SearchTask, why: str) -> None:
        if task.order is not None and task.order.is_followed:
            return  # the recording knows when to give up
        in_vain = max(task.setbacks, task.empty)
        gives_up = task.setbacks >= MAX_SETBACKS or task.empty >= MAX_EMPTY
        if gives_up and task.stop_reason is None:
            task.stop_reason = f"failed: {in_vain} expansions in a row came to nothing: {why}"
            task.failed = True


def _device_seconds(evaluation: Evaluation) -> float:
    """Seconds that an evaluation held a device; none if its verdict was known before."""
    return sum(evaluation.timeline_s.get(stage, 0.0) for stage in DEVICE_STAGES)
