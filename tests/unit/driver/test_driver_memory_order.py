"""Memory whatever ends first: lessons over expansions that overtake, kills before the first ask."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kopt.candidate import Candidate
from kopt.data.fold import fold
from kopt.data.strategies import StrategyFile
from kopt.driver.loop import Driver, Pace
from kopt.driver.memories import Remembering
from kopt.driver.task import SearchTask
from kopt.evaluation import Evaluation
from kopt.events import MemoryUpdated
from kopt.memory.rule import MemoryRule
from kopt.problem import Problem
from kopt.search.config import BestOfNConfig
from kopt.testing.fake_extractor import SilentExtractor
from kopt.testing.fakes import InstantEvaluator, ManualClock, MemorySink, ScriptedProgrammer
from kopt.testing.small_fleet import SMALL_TARGET, small_tasks
from kopt.verdict import Incorrect

THREE = BestOfNConfig(iterations=3, candidates=1)
MANY = BestOfNConfig(iterations=8, candidates=1)


def drive(
    tasks: list[SearchTask],
    sink: MemorySink,
    remembering: Remembering,
    *,
    evaluator: InstantEvaluator | None = None,
) -> list[MemoryUpdated]:
    """Run tasks, three expansions at once; return how their memory grew."""
    driver = Driver(
        tasks,
        programmer=ScriptedProgrammer(),
        evaluator=evaluator or InstantEvaluator(),
        sink=sink,
        clock=ManualClock(),
        target=SMALL_TARGET,
        pace=Pace(max_in_flight=3),
        remembering=remembering,
    )
    assert asyncio.run(driver.run()) == 0
    return [body for body in sink.bodies("memory_updated") if isinstance(body, MemoryUpdated)]


class FirstOneLast(InstantEvaluator):
    """Finds every candidate wrong in one way; the first one is judged after two others."""

    def __init__(self) -> None:
        super().__init__(lambda problem, candidate: Incorrect(check="values:own#0", detail="0.1"))
        self._two_others = asyncio.Event()

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        evaluation = await super().evaluate(problem, candidate)
        number = len(self.calls)
        if number == 1:
            await self._two_others.wait()
        elif number == 3:
            self._two_others.set()
        return evaluation


def test_failures_that_recur_are_a_lesson_in_whatever_order_expansions_end() -> None:
    learned = drive(
        small_tasks(THREE),
        MemorySink(),
        Remembering(rule=MemoryRule(search=True)),
        evaluator=FirstOneLast(),
    )
    recurring = [
        update.expansion
        for update in learned
        for entry in update.entries
        if "3 versions failed alike" in entry["text"]
    ]
    assert len(recurring) == 1


def test_lessons_that_were_given_up_are_counted_with_those_that_came_to_nothing() -> None:
    lines: list[str] = []
    remembering = Remembering(
        rule=MemoryRule(search=True), extractor=SilentExtractor(), warn=lines.append
    )
    drive(small_tasks(MANY), MemorySink(), remembering)
    assert [line for line in lines if line.startswith("6 of 6 extractions")]


def test_a_search_killed_before_it_was_told_of_the_tracker_is_told_when_it_goes_on(
    tmp_path: Path,
) -> None:
    remembering = Remembering(strategies=StrategyFile(tmp_path / "strategies.json"), run="run")
    whole = MemorySink()
    drive(small_tasks(THREE), whole, remembering)
    killed = MemorySink(records=whole.records[:1])
    assert killed.records[0].body.kind == "search_started"
    drive(small_tasks(THREE, earlier=fold(killed.records)), killed, remembering)
    assert [body.kind for body in killed.bodies()][:3] == [
        "search_started",
        "memory_updated",
        "expansion_asked",
    ]
    assert len(killed.bodies("memory_updated")) == 1
