"""Memories of a fleet's searches: kept after each expansion, recalled for each prompt.

Invariants. Nobody waits for an extraction: it runs beside the search, and a prompt is told what was
learned when its expansion was asked (kopt.driver.recollection). Only a deterministic fleet, whose
prompts may not depend on the clock, has an expansion end with its extraction. What a model said is
journalled before it is used. Each expansion that is over has one update: where no model answered,
or nothing that can be read, its lessons are those by rule; so are those that no prompt would read,
since the search has asked for all it may: nobody pays for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kopt.data.answers import answer_from_text
from kopt.data.finding_json import findings_from_json
from kopt.data.memory_json import values_of
from kopt.data.precedents import PastRuns
from kopt.data.strategies import StrategyFile
from kopt.driver.limits import Spent
from kopt.driver.recall import recalled
from kopt.driver.task import SearchTask
from kopt.driver.tracking import Tracking
from kopt.errors import ProgrammerUnavailable, WorkerLost
from kopt.events import MemoryUpdated
from kopt.expansion import Expansion
from kopt.identity import canonical_json, derived_seed
from kopt.memory.entry import MemoryEntry, fresh
from kopt.memory.history import History
from kopt.memory.iteration import Iteration
from kopt.memory.lessons import lessons_of
from kopt.memory.recall import Memory
from kopt.memory.rule import MemoryRule
from kopt.ports import Answer, Attempt, EventSink, ExtractionRequest, Extractor, Target

MAX_FAILURES = 3
"""Extractions in a row that nobody answered, after which a run learns by rule alone."""
CLOSE_S = 10.0
"""Waited at a fleet's end for extractions that were given up."""


def _say_nothing(line: str) -> None:
    del line


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembering:
    """What is remembered, and by whom."""

    rule: MemoryRule = field(default_factory=MemoryRule)
    extractor: Extractor | None = None
    """Draws the lessons of the search memory; None: they are by rule."""
    strategies: StrategyFile | None = None
    """Of the tracker, read when a search begins and added to when it ends; None: neither."""
    past: PastRuns | None = None
    """Where retrieval finds what a search begins with; None: it is off."""
    run: str = ""
    """What tells the run from any other; contributions to the tracker are keyed by it."""
    warn: Callable[[str], None] = _say_nothing
    """Shows one line to the user that stops nothing."""


class _Pending(NamedTuple):
    """What an extraction under way is for."""

    task: SearchTask
    update: MemoryUpdated
    """By rule, where no model answers."""


class Memories:
    """What the loop and the lives of expansions ask of memory."""

    def __init__(
        self,
        remembering: Remembering,
        *,
        sink: EventSink,
        target: Target,
        spent: Spent,
        waits: bool,
        on_change: Callable[[], None],
    ) -> None:
        """Take the parts.

        Args:
            remembering: what, and by whom.
            sink: where every event goes.
            target: that candidates are written for.
            spent: counts what extractions cost.
            waits: whether an expansion is over only once its lessons are drawn.
            on_change: called when an extraction ended, for `check`.
        """
        self._rule = remembering.rule
        self._extractor = remembering.extractor
        self._past = remembering.past
        self._tracking = None
        if remembering.strategies is not None:
            self._tracking = Tracking(
                remembering.strategies, run=remembering.run, sink=sink, warn=remembering.warn
            )
        self._warn = remembering.warn
        self._sink = sink
        self._target = target
        self._spent = spent
        self._waits = waits
        self._on_change = on_change
        self._under_way: dict[asyncio.Task[None], _Pending] = {}
        self._failure: BaseException | None = None
        self._num_asked = 0
        self._num_lacking = 0
        self._failures_in_a_row = 0

    def begin(self, task: SearchTask) -> None:
        """Journal what earlier runs say to a search that starts; what was journalled stays.

        Raises:
            StoreError: the journal cannot be written.
        """
        if self._tracking is not None and task.recollection.began_with("tracker") is None:
            update = self._tracking.began_with(task)
            if update is not None:
                self._keep(task, update)
        if self._past is not None and task.recollection.began_with("retrieval") is None:
            found = self._past.find(task.spec.problem, on_cpu=self._target.device == "cpu")
            entries = values_of([] if found is None else [found])
            self._keep(task, MemoryUpdated(expansion=None, origin="retrieval", entries=entries))

    async def catch_up(self, tasks: Sequence[SearchTask]) -> None:
        """Keep what an earlier driver died before it had kept.

        Raises:
            StoreError: the journal cannot be written, or an answer is missing.
        """
        for task in tasks:
            if task.started and not task.ended and not task.recollection.has_asked:
                self.begin(task)
        if not self._rule.search:
            return
        for task in tasks:
            for expansion, kept in task.unlearned:
                await self.over(task, expansion, answer_from_text(self._sink.get_text(kept)))

    def recall(self, task: SearchTask, expansion: Expansion) -> tuple[Memory, History]:
        """Return what an expansion's author is reminded of."""
        return recalled(task, expansion, rule=self._rule)

    async def over(self, task: SearchTask, expansion: Expansion, answer: Answer) -> None:
        """Learn from an expansion that is over, beside the search.

        Raises:
            StoreError: the journal cannot be written.
        """
        if not self._rule.search or task.recollection.has_learned_from(expansion.ordinal):
            return
        running = self._learn(task, expansion, answer)
        if running is not None and self._waits:
            await asyncio.wait([running])

    def ended(self, task: SearchTask) -> None:
        """Keep lessons by rule for what a model is still asked about, and record what was tried.

        Raises:
            StoreError: the journal cannot be written.
        """
        for running, (whose, update) in list(self._under_way.items()):
            if whose is task and not running.done():
                running.cancel()
                self._num_lacking += 1
                self._keep(
                    task, replace(update, fault="the search ended before the model answered")
                )
        if self._tracking is not None:
            self._tracking.record(task, task.tried())

    def check(self) -> None:
        """Raise what an extraction broke on.

        Raises:
            StoreError: the journal cannot be written.
        """
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """Let go of what is under way, and say what came to nothing."""
        running = list(self._under_way)
        for each in running:
            each.cancel()
        if running:
            await asyncio.wait(running, timeout=CLOSE_S)
        if self._num_lacking:
            self._warn(
                f"{self._num_lacking} of {self._num_asked} extractions for the memory came to "
                "nothing: those lessons are by rule"
            )

    def _learn(
        self, task: SearchTask, expansion: Expansion, answer: Answer
    ) -> asyncio.Task[None] | None:
        """Keep the lessons by rule, or have a model draw them; the task that does."""
        tried = task.tried()
        iteration = Iteration(
            expansion=expansion.ordinal,
            mode=expansion.mode,
            tried=tuple(each for each in tried if each.expansion == expansion.ordinal),
            calls=tuple(call for each in answer.completions for call in each.tool_calls),
            faults=tuple(each.fault for each in answer.completions if each.fault),
        )
        if iteration.is_empty:
            return None
        # Expansions end in any order: whatever was told by now came before.
        before = [each for each in tried if each.expansion != expansion.ordinal]
        by_rule = self._update(
            task, expansion, lessons_of(iteration, before=before), origin="rules"
        )
        if (
            self._extractor is None
            or self._failures_in_a_row >= MAX_FAILURES
            or not task.may_ask_again()
        ):
            self._keep(task, by_rule)
            return None
        request = self._request(task, expansion, answer, iteration)
        running = asyncio.create_task(
            self._extract(self._extractor, request, task, expansion, by_rule)
        )
        self._under_way[running] = _Pending(task, by_rule)
        running.add_done_callback(self._done)
        return running

    async def _extract(
        self,
        extractor: Extractor,
        request: ExtractionRequest,
        task: SearchTask,
        expansion: Expansion,
        by_rule: MemoryUpdated,
    ) -> None:
        self._num_asked += 1
        try:
            answer = await extractor.extract(request)
        except (ProgrammerUnavailable, WorkerLost) as error:
            self._unanswered(str(error))
            self._keep(task, replace(by_rule, fault=" ".join(str(error).split())))
            return
        if task.ended:
            return  # it did not heed that it was given up
        self._failures_in_a_row = 0
        said, update = answer.completion, by_rule
        if answer.entries is not None:
            update = self._update(task, expansion, answer.entries, origin="model")
        self._num_lacking += answer.entries is None
        self._spent.add(said.usage)
        self._keep(
            task,
            replace(
                update,
                messages=self._sink.put_text(canonical_json(answer.messages)),
                sampling=dict(answer.sampling),
                text=self._sink.put_text(said.text) if said.text else None,
                fault=said.fault,
                tokens_in=said.usage.tokens_in,
                tokens_out=said.usage.tokens_out,
                cost_usd=said.usage.cost_usd,
            ),
        )

    def _update(
        self, task: SearchTask, expansion: Expansion, entries: Iterable[MemoryEntry], *, origin: str
    ) -> MemoryUpdated:
        new = fresh(entries, task.recollection.entries())
        return MemoryUpdated(expansion=expansion.ordinal, origin=origin, entries=values_of(new))

    def _keep(self, task: SearchTask, update: MemoryUpdated) -> None:
        self._sink.append(task.spec.name, update)
        task.recollection.learned(update)

    def _request(
        self, task: SearchTask, expansion: Expansion, answer: Answer, iteration: Iteration
    ) -> ExtractionRequest:
        told = {each.candidate for each in iteration.tried}
        written = {each.candidate_id: each for each in answer.candidates}
        return ExtractionRequest(
            problem=task.spec.problem,
            target=self._target,
            iteration=iteration,
            parent=self._parent(task, expansion),
            written=tuple(
                Attempt(candidate=candidate, evaluation=task.evaluations[candidate_id])
                for candidate_id, candidate in written.items()
                if candidate_id in told
            ),
            known=task.recollection.entries(),
            seed=derived_seed(task.spec.seed, "memory", expansion.ordinal),
            search=task.spec.name,
            search_seed=task.spec.seed,
        )

    def _parent(self, task: SearchTask, expansion: Expansion) -> Attempt | None:
        attempt = task.attempt(expansion.parent, self._sink)
        profile = task.profiles.get(expansion.parent or "")
        if attempt is None or profile is None or profile.findings is None:
            return attempt
        return replace(attempt, findings=findings_from_json(profile.findings.findings))

    def _done(self, running: asyncio.Task[None]) -> None:
        del self._under_way[running]
        if not running.cancelled() and running.exception() is not None:
            self._failure = running.exception()
        self._on_change()

    def _unanswered(self, why: str) -> None:
        self._num_lacking += 1
        self._failures_in_a_row += 1
        if self._failures_in_a_row == MAX_FAILURES:
            self._warn(
                f"{MAX_FAILURES} extractions in a row for the memory failed, the last: {why}; "
                "this run goes on with lessons by rule"
            )
