"""A driver whose programmer waits for others: what waits is left open, and a later one goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kopt.data.fold import RunState, fold
from kopt.driver.life import MAX_EMPTY, MAX_SETBACKS
from kopt.driver.limits import Limits
from kopt.driver.loop import Driver, Pace
from kopt.driver.task import SearchTask
from kopt.errors import AnswerAwaited, ProgrammerUnavailable
from kopt.ports import Answer, Completion, WriteRequest
from kopt.search.config import BestOfNConfig, MctsConfig
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    MemorySink,
    ScriptedProgrammer,
    fresh_candidates,
)
from kopt.testing.small_fleet import SMALL_TARGET, run_in_folder, small_problem, small_tasks

MCTS = MctsConfig(iterations=6, candidates=2)


def drive(
    tasks: list[SearchTask],
    sink: MemorySink,
    programmer: ScriptedProgrammer,
    *,
    pace: Pace | None = None,
    limits: Limits | None = None,
) -> tuple[int, int]:
    """Return how many searches failed, and how many answers are awaited."""
    driver = Driver(
        tasks,
        programmer=programmer,
        evaluator=InstantEvaluator(),
        sink=sink,
        clock=ManualClock(),
        target=SMALL_TARGET,
        pace=pace or Pace(max_in_flight=2, max_per_search=2),
        limits=limits,
    )
    return asyncio.run(driver.run()), driver.awaiting


def nobody(request: WriteRequest) -> Answer:
    raise AnswerAwaited(f"prompt {request.expansion.ordinal}")


def folded(sink: MemorySink) -> RunState:
    return fold(sink.records)


def test_every_search_lays_out_its_prompts_although_the_first_ones_fill_all_places() -> None:
    sink = MemorySink()
    problems = [small_problem(f"set/{name}") for name in "abc"]
    failed, awaiting = drive(small_tasks(MCTS, problems=problems), sink, ScriptedProgrammer(nobody))
    assert (failed, awaiting) == (0, 6)
    state = folded(sink)
    assert state.ended is None
    assert {len(search.expansions) for search in state.searches.values()} == {2}
    assert all(search.ended is None for search in state.searches.values())
    assert not sink.bodies("expansion_cancelled")


def test_a_suspended_search_goes_on_where_it_was_and_asks_nothing_twice() -> None:
    sink = MemorySink()
    drive(small_tasks(MCTS), sink, ScriptedProgrammer(nobody))
    answered: set[int] = set()

    def one_round(request: WriteRequest) -> Answer:
        """Answers what was open when the round began."""
        if request.expansion.ordinal in known:
            answered.add(request.expansion.ordinal)
            return fresh_candidates(request)
        return nobody(request)

    for _ in range(3):
        earlier = folded(sink)
        (search,) = earlier.searches.values()
        known = {ordinal for ordinal, each in search.expansions.items() if not each.told}
        assert len(known) == 2
        assert earlier.ended is None
        drive(small_tasks(MCTS, earlier=earlier), sink, ScriptedProgrammer(one_round))
    state = folded(sink)
    (search,) = state.searches.values()
    assert answered == set(range(6))
    assert sum(len(each.told) for each in search.expansions.values()) == 12
    assert search.ended is not None
    assert search.ended.reason == "budget"
    assert state.ended is not None


def test_what_can_go_on_goes_on_beside_a_search_that_waits() -> None:
    def one_waits(request: WriteRequest) -> Answer:
        waits = request.problem.name == "set/a"
        return nobody(request) if waits else fresh_candidates(request)

    sink = MemorySink()
    tasks = small_tasks(MCTS, problems=[small_problem("set/a"), small_problem("set/b")])
    failed, awaiting = drive(tasks, sink, ScriptedProgrammer(one_waits))
    assert (failed, awaiting) == (0, 2)
    ends = {name[4]: search.ended for name, search in folded(sink).searches.items()}
    assert ends["a"] is None
    assert ends["b"] is not None
    assert ends["b"].reason == "budget"


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_limit_that_is_reached_lets_what_was_asked_be_answered(*, deterministic: bool) -> None:
    sink = MemorySink()
    pace = Pace(max_in_flight=1, max_per_search=1, deterministic=deterministic)
    limits = Limits(candidates=2)
    tasks = small_tasks(MCTS)
    assert drive(tasks, sink, ScriptedProgrammer(nobody), pace=pace, limits=limits) == (0, 1)
    tasks = small_tasks(MCTS, earlier=folded(sink))
    assert drive(tasks, sink, ScriptedProgrammer(), pace=pace, limits=limits) == (0, 0)
    (search,) = folded(sink).searches.values()
    assert search.ended is not None
    assert search.ended.reason == "limits.candidates=2"
    assert len(search.expansions[0].told) == 2


def test_a_run_folder_that_was_moved_goes_on(tmp_path: Path) -> None:
    here, there = tmp_path / "here" / "run", tmp_path / "there" / "run"
    here.mkdir(parents=True)
    there.parent.mkdir()
    pace = Pace(max_in_flight=4, max_per_search=2)
    state = run_in_folder(
        here,
        small_tasks(MCTS),
        programmer=ScriptedProgrammer(nobody),
        evaluator=InstantEvaluator(),
        pace=pace,
    )
    here.rename(there)
    state = run_in_folder(
        there,
        small_tasks(MCTS, earlier=state),
        programmer=ScriptedProgrammer(),
        evaluator=InstantEvaluator(),
        pace=pace,
    )
    assert state.ended is not None


def empty_answers(ordinals: set[int]) -> ScriptedProgrammer:
    def script(request: WriteRequest) -> Answer:
        if request.expansion.ordinal in ordinals:
            return Answer(candidates=(), note="no code block")
        return fresh_candidates(request)

    return ScriptedProgrammer(script)


def test_a_few_answers_without_code_do_not_fail_a_search() -> None:
    sink = MemorySink()
    config = BestOfNConfig(iterations=6, candidates=2)
    pace = Pace(max_in_flight=1)
    programmer = empty_answers(set(range(1, MAX_EMPTY)))
    assert MAX_EMPTY > MAX_SETBACKS
    assert drive(small_tasks(config), sink, programmer, pace=pace) == (0, 0)
    (search,) = folded(sink).searches.values()
    assert search.ended is not None
    assert search.ended.reason == "budget"
    assert len(sink.bodies("expansion_cancelled")) == MAX_EMPTY - 1


def test_a_programmer_who_never_writes_code_fails_its_search() -> None:
    sink = MemorySink()
    programmer = empty_answers(set(range(1_000)))
    assert drive(small_tasks(MCTS), sink, programmer, pace=Pace(max_in_flight=1)) == (1, 0)
    (search,) = folded(sink).searches.values()
    assert search.ended is not None
    assert search.ended.reason == "failed: 8 expansions in a row came to nothing: no code block"
    assert len(programmer.requests) == MAX_EMPTY


def test_an_answer_without_code_shows_that_the_programmer_is_there() -> None:
    def script(request: WriteRequest) -> Answer:
        if request.expansion.ordinal % 3 != 2:
            raise ProgrammerUnavailable("model", "down")
        return Answer(candidates=(), note="no code block")

    sink = MemorySink()
    programmer = ScriptedProgrammer(script)
    drive(small_tasks(MCTS), sink, programmer, pace=Pace(max_in_flight=1))
    assert len(programmer.requests) == 3 * MAX_EMPTY


def test_passes_of_earlier_sittings_count_with_those_of_this_one() -> None:
    def one_pass() -> ScriptedProgrammer:
        """Passes on the first prompt of a sitting; nobody answers those that follow."""
        asked: list[int] = []

        def script(request: WriteRequest) -> Answer:
            asked.append(request.expansion.ordinal)
            if len(asked) == 1:
                return Answer(candidates=(), completions=(Completion(text="pass"),), note="pass")
            return nobody(request)

        return ScriptedProgrammer(script)

    sink = MemorySink()
    pace = Pace(max_in_flight=1, max_per_search=1)
    for sitting in range(MAX_EMPTY):
        tasks = small_tasks(MCTS, earlier=folded(sink) if sitting else None)
        failed, awaiting = drive(tasks, sink, one_pass(), pace=pace)
        assert (failed, awaiting) == ((0, 1) if sitting < MAX_EMPTY - 1 else (1, 0))
