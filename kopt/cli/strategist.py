"""`mode=compiled` with `pipeline=agents`: which launches are fused is decided by a model as well.

Between taking models apart and their searches. All questions of a multirun are asked at once, and
what is alike once: arms are to differ in how they search, not in what. Each call is in the journal
before it is used; a model whose groups change is cut anew, by the same compiler's cache. Whatever
goes wrong leaves the rule's groups, and is said in a line.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from kopt.actors.compiled.order import carry_out
from kopt.actors.programmers.agents.tally import AgentTally
from kopt.agent_call import AgentCall, AgentReply, CallPlace, Talker
from kopt.cli.compiled import CompiledJob, TakenModel
from kopt.cli.compiled_report import begin_without_searches
from kopt.cli.regrouping import CutAnew, Reply, regrouped_model
from kopt.clock import SystemClock
from kopt.data.fold import fold
from kopt.data.journal import Journal, read_events
from kopt.driver.model_desk import ModelDesk
from kopt.errors import AnswerAwaited, ProgrammerUnavailable, WorkerLost
from kopt.identity import derived_seed
from kopt.ports import Programmer
from kopt.problem import Problem
from kopt.prompts.agent_grouping import grouping_prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the strategist is asked; the first of its jobs asks for all."""

    call: AgentCall
    jobs: list[CompiledJob]


Hire = Callable[
    [Sequence[CompiledJob]], AbstractContextManager[Callable[[CompiledJob], Programmer]]
]
"""Called with the jobs that ask; within it, gives each job's programmer."""
Said = Reply | AnswerAwaited
"""What came of a question: a reply, none yet, or why there is none."""


def settle_groups(
    jobs: Sequence[CompiledJob], *, hire: Hire | None = None, cut_anew: CutAnew = carry_out
) -> tuple[list[list[TakenModel]], int]:
    """Have the strategist decide on the choices of all models, and cut anew what changes.

    Args:
        jobs: of one command.
        hire: gives programmers; None: a cluster is opened for them.
        cut_anew: takes a model apart in a process of its own.

    Returns:
        The models of each job, and how many answers are awaited: then nothing is cut anew.

    Raises:
        ConfigError: the cluster or the programmer cannot be had.
        StoreError: a run folder cannot be written or read.
    """
    if not any(job.open_models for job in jobs):
        return [list(job.models) for job in jobs], 0
    with ExitStack() as stack:
        desks = {job.run.path: _desk(job, stack) for job in jobs if job.open_models}
        questions = _questions(jobs)
        said: dict[str, Said] = {}
        unknown = {}
        for key, question in questions.items():
            known = (desks[job.run.path].known(question.call) for job in question.jobs)
            reply = next((each for each in known if each is not None), None)
            if reply is None:
                unknown[key] = question
            else:
                said[key] = reply
        if unknown:
            asking = _distinct([question.jobs[0] for question in unknown.values()])
            with (hire or _hire())(asking) as programmer_of:
                said |= asyncio.run(_ask(unknown, asking, programmer_of, desks))
        for key, question in questions.items():
            reply_to = said[key]
            if isinstance(reply_to, AgentReply):
                for job in question.jobs:
                    desks[job.run.path].share(question.call, reply_to)
    awaiting = sum(isinstance(each, AnswerAwaited) for each in said.values())
    if awaiting:
        return [list(job.models) for job in jobs], awaiting
    done: dict[str, TakenModel] = {}
    return [[_settled(job, model, said, done, cut_anew) for model in job.models] for job in jobs], 0


def _questions(jobs: Sequence[CompiledJob]) -> dict[str, Question]:
    questions: dict[str, Question] = {}
    for job in jobs:
        for model in job.open_models:
            problem = model.order.problem
            call = AgentCall(
                place=CallPlace(0, "strategist", 0, 0),
                problem=problem,
                search="",
                seed=job.config.seed[0],
                draw=derived_seed(job.config.seed[0], "strategist", problem.problem_id),
                messages=grouping_prompt(model.apart),
            )
            key = _question_key(job, model)
            question = questions.setdefault(key, Question(call=call, jobs=[]))
            question.jobs.append(job)
    return questions


def _key(job: CompiledJob, model: TakenModel) -> str:
    """Equal where one cut serves: models compiled alike, and the same programmer."""
    return f"{model.key}\n{job.config.programmer.model_dump_json()}"


def _question_key(job: CompiledJob, model: TakenModel) -> str:
    """Equal where one answer serves: the same, whatever a model is called."""
    given = model.order.problem
    nameless = Problem(name="", source=given.source, given=given.given, dtype=given.dtype)
    return _key(job, replace(model, order=replace(model.order, problem=nameless)))


def _desk(job: CompiledJob, stack: ExitStack) -> ModelDesk:
    begin_without_searches(job.config, job.run)  # so that a resume finds how the run is set up
    journal = stack.enter_context(Journal(job.run.path, run=job.run.name, clock=SystemClock()))
    return ModelDesk(fold(read_events(job.run.path)).calls, sink=journal)


async def _ask(
    questions: dict[str, Question],
    asking: Sequence[CompiledJob],
    programmer_of: Callable[[CompiledJob], Programmer],
    desks: Mapping[Path, ModelDesk],
) -> dict[str, Said]:
    """Ask every question, all at once; none ends another."""
    tally = AgentTally()
    programmers: dict[Path, Programmer] = {}

    async def asked(question: Question) -> Said:
        job = question.jobs[0]
        programmer = programmers[job.run.path]
        if not isinstance(programmer, Talker):
            return f"programmer={job.config.programmer.kind} answers no calls of roles"
        try:
            reply = await desks[job.run.path].ask(question.call, say=programmer.say)
        except AnswerAwaited as awaited:
            return awaited
        except (ProgrammerUnavailable, WorkerLost) as error:
            return str(error)
        tally.add("strategist", reply)
        return reply

    try:
        for job in asking:
            programmers[job.run.path] = programmer_of(job)
        replies = await asyncio.gather(*(asked(question) for question in questions.values()))
    finally:
        for programmer in {id(each): each for each in programmers.values()}.values():
            await programmer.close()
    for line in tally.lines():
        _say(f"pipeline agents: {line}")
    return dict(zip(questions, replies, strict=True))


def _settled(
    job: CompiledJob,
    model: TakenModel,
    said: Mapping[str, Said],
    done: dict[str, TakenModel],
    cut_anew: CutAnew,
) -> TakenModel:
    """Return a model with what was decided; what one cut serves is cut once."""
    if model not in job.open_models:
        return model
    key = _key(job, model)
    if key in done:
        shutil.copytree(done[key].folder, model.folder, dirs_exist_ok=True)
        return replace(model, apart=done[key].apart)
    reply = said[_question_key(job, model)]
    assert not isinstance(reply, AnswerAwaited), "the run is suspended then"
    done[key] = regrouped_model(
        model, reply, timeout_s=job.config.compiled.timeout_s, cut_anew=cut_anew
    )
    _say(f"{model.apart.model}: strategist: {done[key].apart.strategist}")
    return done[key]


def _distinct(jobs: Sequence[CompiledJob]) -> list[CompiledJob]:
    return list({job.run.path: job for job in jobs}.values())


def _hire() -> Hire:
    from kopt.cli.hiring import hired  # loads Ray

    return hired


def _say(line: str) -> None:
    sys.stderr.write(f"kopt: {line}\n")
