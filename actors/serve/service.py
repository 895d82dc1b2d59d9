"""Judging completions: idempotent by content, bounded, and never held up by one slow candidate.

Invariants:

* A candidate of a problem is judged by one task at a time, however many ask for it; those who ask
  later get the same answer.
* At most `max_waiting` candidates are judged or wait; a batch with more new ones is refused whole,
  so that every completion of an accepted batch is answered once.
* A request waits as long as it said and no longer; judging goes on without it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kopt.actors.serve.config import ServeConfig
from kopt.actors.serve.messages import Item, Judgement
from kopt.candidate import Candidate
from kopt.data.problems import check_contracts
from kopt.errors import ConfigError, KoptError
from kopt.evaluation import Evaluation, to_json
from kopt.expansion import first_expansion
from kopt.identity import content_id, text_id
from kopt.ports import Evaluator, Target, WriteRequest
from kopt.problem import Problem
from kopt.prompts.answer import read_answer
from kopt.reward import FAILED_REWARD, RewardRule, reward

_LOG = logging.getLogger(__name__)
NO_CANDIDATE = "no_candidate"
QUICK_TEXT = 50_000
"""Characters that are read in some milliseconds; a longer completion is read in a thread."""
SECONDS_EACH = 2.0
"""That one candidate takes until some have been judged; then what they took."""
Findings = Callable[[Problem, Candidate, Evaluation], Awaitable[list[dict[str, Any]] | None]]
"""Gives the findings of a right candidate; None where there are none to be had."""


class Busy(Exception):
    """More candidates than may wait; nothing of the batch was taken."""

    def __init__(self, retry_after_s: float) -> None:
        """Take the seconds after which it is worth asking again."""
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    key: str
    problem: Problem
    candidate: Candidate


class RewardService:
    """Judges completions with the search's own evaluator. Of one event loop."""

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        target: Target,
        rule: RewardRule,
        config: ServeConfig,
        problems: Sequence[Problem] = (),
        findings: Findings | None = None,
    ) -> None:
        """Take what it judges with.

        Args:
            evaluator: the search's.
            target: that candidates are judged on.
            rule: how a verdict becomes a reward.
            config: bounds.
            problems: that requests may name.
            findings: of right candidates; None where nothing is profiled.
        """
        self._evaluator = evaluator
        self._target = target
        self._rule = rule
        self._config = config
        self._findings = findings
        self._problems: dict[str, Problem] = {}
        for problem in problems:
            self._problems[problem.name] = self._problems[problem.problem_id] = problem
        self._sources: OrderedDict[str, Problem] = OrderedDict()
        self._jobs: OrderedDict[str, _Job | Judgement] = OrderedDict()
        self._known: OrderedDict[str, Judgement] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[Judgement]] = {}
        self._room = asyncio.Semaphore(config.max_running)
        self._seconds_each = SECONDS_EACH
        self.judged = 0
        """Candidates that were judged; `served` counts answers."""
        self.served = 0

    @property
    def waiting(self) -> int:
        """Candidates that are judged or wait for it."""
        return len(self._under_way)

    def problem_names(self) -> list[str]:
        """Return the names of the problems that requests may name."""
        return sorted({problem.name for problem in self._problems.values()})

    async def judge(self, items: Sequence[Item], *, wait_s: float) -> list[Judgement]:
        """Judge a batch; return an answer for each item, in order.

        Args:
            items: completions.
            wait_s: for those whose verdict is not known.

        Raises:
            Busy: too many candidates wait; nothing was taken.
        """
        read = [await self._read(item) for item in items]
        jobs = {
            each.key: each
            for each in read
            if isinstance(each, _Job)
            and each.key not in self._known
            and each.key not in self._under_way
        }
        free = self._config.max_waiting - self.waiting
        if len(jobs) > free:
            raise Busy(self._retry_after_s(len(jobs) - free))
        for job in jobs.values():
            self._start(job)
        wanted = [each.key for each in read if isinstance(each, _Job)]
        answers = await self._awaited(wanted, wait_s=min(wait_s, self._config.max_wait_s))
        self.served += len(items)
        return [each if isinstance(each, Judgement) else answers[each.key] for each in read]

    async def look_up(self, key: str, *, wait_s: float = 0.0) -> Judgement | None:
        """Return the answer of a key; None where it is not known and nobody judges it."""
        if key not in self._known and key not in self._under_way:
            return None
        return (await self._awaited([key], wait_s=min(wait_s, self._config.max_wait_s)))[key]

    async def close(self) -> None:
        """Give up what is under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _awaited(self, keys: Sequence[str], *, wait_s: float) -> dict[str, Judgement]:
        tasks = {key: self._under_way[key] for key in set(keys) if key in self._under_way}
        # Taken now: what is known may be let go while we wait.
        answers = {key: self._known[key] for key in set(keys) - tasks.keys()}
        if tasks and wait_s > 0.0:
            await asyncio.wait(tasks.values(), timeout=wait_s)
        for key, task in tasks.items():
            is_done = task.done() and not task.cancelled()
            answers[key] = task.result() if is_done else Judgement(key=key, status="pending")
        return answers

    def _start(self, job: _Job) -> None:
        task = asyncio.get_running_loop().create_task(self._judged(job))
        self._under_way[job.key] = task
        task.add_done_callback(lambda _: self._under_way.pop(job.key, None))

    async def _judged(self, job: _Job) -> Judgement:
        async with self._room:
            began_s = asyncio.get_running_loop().time()
            try:
                evaluation = await self._evaluator.evaluate(job.problem, job.candidate)
            except KoptError as error:
                return Judgement(key=job.key, status="failed", reason=str(error))
            except Exception as error:  # noqa: BLE001 - one candidate must not end the service
                _LOG.exception("a candidate could not be judged")
                return Judgement(key=job.key, status="failed", reason=repr(error)[:300])
            took_s = asyncio.get_running_loop().time() - began_s
            self._seconds_each += 0.1 * (took_s - self._seconds_each)
            answer = self._answer(job, evaluation, findings=await self._found(job, evaluation))
        self.judged += 1
        _keep(self._known, job.key, answer, at_most=self._config.max_known)
        return answer

    async def _found(self, job: _Job, evaluation: Evaluation) -> list[dict[str, Any]] | None:
        if self._findings is None or evaluation.verdict.kind != "correct":
            return None
        try:
            return await self._findings(job.problem, job.candidate, evaluation)
        except KoptError as error:  # a profile costs no verdict
            _LOG.warning("nothing is found of %s: %s", job.candidate.candidate_id[:12], error)
            return None

    def _answer(
        self, job: _Job, evaluation: Evaluation, *, findings: list[dict[str, Any]] | None
    ) -> Judgement:
        record = to_json(evaluation)
        return Judgement(
            key=job.key,
            status="done",
            reward=reward(evaluation.verdict, self._rule),
            kind=record["kind"],
            speedup=record["speedup"],
            reason=record["reason"],
            candidate=job.candidate.candidate_id,
            eval=cast("dict[str, Any]", record),
            findings=findings,
        )

    async def _read(self, item: Item) -> _Job | Judgement:
        """Return what is to be judged, or the answer where that is nothing."""
        try:
            problem = self._problem(item)
        except ConfigError as error:
            return Judgement(key="", status="failed", reason=str(error))
        text = item.text()
        place = text_id(f"{problem.problem_id}\0{text}")
        known = self._jobs.get(place)
        if known is None:
            if len(text) > QUICK_TEXT:
                known = await asyncio.to_thread(self._read_text, text, problem=problem, place=place)
            else:
                known = self._read_text(text, problem=problem, place=place)
            _keep(self._jobs, place, known, at_most=self._config.max_known)
        return known

    def _read_text(self, text: str, *, problem: Problem, place: str) -> _Job | Judgement:
        request = WriteRequest(
            problem=problem,
            target=self._target,
            search="",
            arm="",
            seed=0,
            expansion=first_expansion(),
            parent=None,
        )
        reading = read_answer(text, request=request, programmer="served")
        if not reading.candidates:
            return Judgement(
                key=content_id("judgement", 1, {"problem": problem.problem_id, "text": place}),
                status="done",
                reward=FAILED_REWARD,
                kind=NO_CANDIDATE,
                reason=reading.fault,
            )
        candidate = reading.candidates[0]
        fields = {"problem": problem.problem_id, "candidate": candidate.candidate_id}
        return _Job(key=content_id("judgement", 1, fields), problem=problem, candidate=candidate)

    def _problem(self, item: Item) -> Problem:
        if item.problem_source is None:
            known = self._problems.get(item.problem)
            if known is None:
                raise ConfigError(
                    f"no problem {item.problem[:80]!r} here: name one of `problem=`, or send "
                    "problem_source"
                )
            return known
        name = "".join(c if c.isalnum() or c in "._/-" else "-" for c in item.problem[:80])
        problem = Problem(name=name or "sent", source=item.problem_source, dtype=item.problem_dtype)
        known = self._sources.get(problem.problem_id)
        if known is None:
            check_contracts([problem])
            known = problem
            _keep(self._sources, problem.problem_id, known, at_most=self._config.max_known)
        return known

    def _retry_after_s(self, too_many: int) -> float:
        return max(1.0, too_many * self._seconds_each / self._config.max_running)


def _keep(known: OrderedDict[str, Any], key: str, value: object, *, at_most: int) -> None:
    known[key] = value
    while len(known) > at_most:
        known.popitem(last=False)
