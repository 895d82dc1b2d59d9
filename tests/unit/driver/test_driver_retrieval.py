"""Retrieval in the driver: told from the first prompt on, journalled, the same after a kill."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kopt.data.fold import fold
from kopt.data.journal import Journal
from kopt.data.journal_files import read_events
from kopt.data.precedents import PastRuns
from kopt.data.results import write_results
from kopt.data.rundir import RunDir
from kopt.data.strategies import StrategyFile
from kopt.driver.loop import Driver, Pace
from kopt.driver.memories import Remembering
from kopt.driver.replay import replay
from kopt.driver.task import SearchTask
from kopt.errors import StoreError
from kopt.events import MemoryUpdated, SearchEnded
from kopt.problem import Problem
from kopt.search.config import MctsConfig
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    MemorySink,
    ScriptedProgrammer,
    correct,
    source_candidate,
)
from kopt.testing.sample_journal import started, write_search
from kopt.testing.small_fleet import SMALL_TARGET, small_problem, small_tasks

MCTS = MctsConfig(iterations=4, candidates=2)
ASKING = Problem(name="set/one", source=small_problem().source, family="norm")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one past run, of another problem of the family."""
    run = RunDir(tmp_path / "runs" / "past")
    run.path.mkdir(parents=True)
    problem = Problem(name="set/past", source="class Model:\n    past = 1\n", family="norm")
    run.keep_problem(problem)
    candidate = source_candidate("class ModelNew:\n    fast = 1\n", strategy="one pass")
    with Journal(run.path, run=run.name, clock=ManualClock()) as sink:
        end = SearchEnded(reason="budget", failed=False)
        write_search(sink, problem=problem, expansions=[[(candidate, correct(2.0))]], end=end)
    write_results(run, fold(read_events(run.path)))
    return tmp_path / "runs"


def drive(
    tasks: list[SearchTask],
    sink: MemorySink,
    *,
    past: PastRuns | None,
    strategies: StrategyFile | None = None,
) -> ScriptedProgrammer:
    programmer = ScriptedProgrammer()
    driver = Driver(
        tasks,
        programmer=programmer,
        evaluator=InstantEvaluator(),
        sink=sink,
        clock=ManualClock(),
        target=SMALL_TARGET,
        pace=Pace(max_in_flight=4, deterministic=True),
        remembering=Remembering(past=past, strategies=strategies),
    )
    assert asyncio.run(driver.run()) == 0
    return programmer


def beginnings(sink: MemorySink) -> list[str]:
    bodies = [body for body in sink.bodies("memory_updated") if isinstance(body, MemoryUpdated)]
    return [body.origin for body in bodies if body.expansion is None]


def test_every_prompt_is_told_the_precedent_and_the_journal_has_it_once(folder: Path) -> None:
    sink = MemorySink()
    past = PastRuns(folder, own=folder / "own")
    programmer = drive(small_tasks(MCTS, problems=[ASKING]), sink, past=past)
    told = {request.memory.precedent for request in programmer.requests}
    (precedent,) = told
    assert precedent is not None
    assert [step.strategy for step in precedent.steps] == ["one pass"]
    assert beginnings(sink) == ["retrieval"]
    replay(fold(sink.records))


def test_by_default_nothing_is_told() -> None:
    sink = MemorySink()
    programmer = drive(small_tasks(MCTS, problems=[ASKING]), sink, past=None)
    assert {request.memory.precedent for request in programmer.requests} == {None}
    assert beginnings(sink) == []


def test_that_there_is_no_precedent_is_journalled_too(tmp_path: Path) -> None:
    sink = MemorySink()
    past = PastRuns(tmp_path, own=tmp_path / "own")
    programmer = drive(small_tasks(MCTS, problems=[ASKING]), sink, past=past)
    assert {request.memory.precedent for request in programmer.requests} == {None}
    assert beginnings(sink) == ["retrieval"]


def test_a_resumed_search_is_told_what_it_began_with_whatever_came_since(
    folder: Path, tmp_path: Path
) -> None:
    whole = MemorySink()
    first = drive(
        small_tasks(MCTS, problems=[ASKING]), whole, past=PastRuns(folder, own=folder / "own")
    )
    (expected,) = {request.memory.precedent for request in first.requests}
    empty = PastRuns(tmp_path / "runs" / "past", own=tmp_path)
    for cut in range(2, len(whole.records), 5):
        killed = MemorySink(records=whole.records[:cut])
        killed.texts = dict(whole.texts)
        again = small_tasks(MCTS, problems=[ASKING], earlier=fold(killed.records))
        programmer = drive(again, killed, past=empty)
        assert {request.memory.precedent for request in programmer.requests} <= {expected}
        assert beginnings(killed) == ["retrieval"]


def test_a_kill_between_tracker_and_retrieval_loses_neither(folder: Path, tmp_path: Path) -> None:
    strategies = StrategyFile(tmp_path / "tracker.json")
    past = PastRuns(folder, own=folder / "own")
    whole = MemorySink()
    drive(small_tasks(MCTS, problems=[ASKING]), whole, past=past, strategies=strategies)
    assert beginnings(whole) == ["tracker", "retrieval"]
    killed = MemorySink(records=whole.records[:2])
    assert beginnings(killed) == ["tracker"]
    again = small_tasks(MCTS, problems=[ASKING], earlier=fold(killed.records))
    programmer = drive(again, killed, past=past, strategies=strategies)
    assert beginnings(killed) == ["tracker", "retrieval"]
    assert all(request.memory.precedent is not None for request in programmer.requests)


def test_a_search_begins_with_one_update_of_each_origin() -> None:
    sink = MemorySink()
    sink.append("set/one/arm/0", started(ASKING, arm="arm", seed=0))
    for origin in ("tracker", "retrieval"):
        update = MemoryUpdated(expansion=None, origin=origin, entries=[])
        sink.append("set/one/arm/0", update)
    fold(sink.records)
    sink.append("set/one/arm/0", MemoryUpdated(expansion=None, origin="retrieval", entries=[]))
    with pytest.raises(StoreError, match="its beginning was remembered before"):
        fold(sink.records)
