"""The driver with searches that know strategies and progress: killed anywhere, they go on."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import pytest

from kopt.data.fold import fold
from kopt.data.record import Record
from kopt.driver.loop import Driver, Pace
from kopt.driver.replay import replay, resumed_task
from kopt.driver.task import SearchSpec, SearchTask
from kopt.expansion import Expansion
from kopt.ports import Answer, Target, WriteRequest
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.search.base import FinishReason, Told
from kopt.search.config import BeamConfig, GreedyConfig, SearchConfig
from kopt.search.searches import create_search
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    MemorySink,
    ScriptedProgrammer,
    source_candidate,
)
from kopt.verdict import Verdict

TARGET = Target(device="cpu", name="test", arch="x86_64", languages=("torch",))
GREEDY = GreedyConfig(iterations=15, candidates=2)
BEAM = BeamConfig(iterations=8, candidates=4, idle_iterations=None)
PLANS = ("tile the loop", "fuse the epilogue", "vectorise loads", "unroll")


def planned_candidates(request: WriteRequest) -> Answer:
    """Answer with distinct candidates, every third expansion of one strategy alone."""
    expansion = request.expansion
    slots = range(expansion.num_candidates)
    return Answer(
        candidates=tuple(
            source_candidate(
                f"# {expansion.parent} {expansion.seed} {slot}\nclass ModelNew: ...\n",
                parent=expansion.parent,
                strategy=PLANS[
                    (expansion.seed + slot) % len(PLANS) if expansion.ordinal % 3 else 0
                ],
            )
            for slot in slots
        )
    )


def fresh_task(config: SearchConfig) -> SearchTask:
    spec = SearchSpec(
        problem=Problem(name="set/one", source="# one"),
        arm="arm",
        seed=0,
        policy=config.kind,
        policy_config={"search": config.model_dump(), "reward": asdict(RewardRule())},
    )
    return SearchTask(spec=spec, tree=create_search(config, rule=RewardRule(), seed=0))


def drive(task: SearchTask, sink: MemorySink) -> int:
    driver = Driver(
        [task],
        programmer=ScriptedProgrammer(planned_candidates),
        evaluator=InstantEvaluator(),
        sink=sink,
        clock=ManualClock(),
        target=TARGET,
        pace=Pace(max_in_flight=3),
    )
    return asyncio.run(driver.run())


def told_records(config: SearchConfig) -> MemorySink:
    sink = MemorySink()
    assert drive(fresh_task(config), sink) == 0
    return sink


@pytest.mark.parametrize("config", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_replay_rebuilds_the_tree_with_strategies_and_progress(config: SearchConfig) -> None:
    sink = MemorySink()
    task = fresh_task(config)
    drive(task, sink)
    (replayed,) = replay(fold(sink.records))
    assert replayed.ended == "budget"
    assert replayed.tree.nodes() == task.tree.nodes()
    assert replayed.tree.snapshot() == task.tree.snapshot()
    assert {view.strategy for view in replayed.tree.nodes()[1:]} == set(PLANS)


@pytest.mark.parametrize("config", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_a_run_killed_after_any_record_is_resumed_and_spends_its_budget(
    config: SearchConfig,
) -> None:
    whole = told_records(config)
    for length in range(2, len(whole.records), 11):
        records: list[Record] = whole.records[:length]
        sink = MemorySink(records=records)
        sink.texts.update(whole.texts)
        (known,) = fold(records).searches.values()
        task = resumed_task(fresh_task(config).spec, known)
        assert drive(task, sink) == 0
        assert task.tree.told() == config.budget
        (replayed,) = replay(fold(sink.records))
        assert replayed.tree.nodes() == task.tree.nodes()


def test_a_beam_that_ended_idle_goes_on_with_the_stop_off() -> None:
    config = BeamConfig(iterations=30, candidates=2, retries=0, idle_iterations=1)
    sink = told_records(config)
    (known,) = fold(sink.records).searches.values()
    assert known.ended is not None
    assert known.ended.reason == "idle"
    longer = config.model_copy(update={"idle_iterations": None})
    task = resumed_task(fresh_task(longer).spec, known)
    drive(task, sink)
    assert task.tree.told() == 60
    (replayed,) = replay(fold(sink.records))
    assert (replayed.ended, replayed.tree.nodes()) == ("budget", task.tree.nodes())


class OlderSearch:
    """A package's search whose `tell` was written before there were strategies."""

    def __init__(self, config: SearchConfig) -> None:
        self._search = create_search(config, rule=RewardRule(), seed=0)

    def ask(self, k: int = 1) -> list[Expansion]:
        return self._search.ask(k)

    def tell(self, ordinal: int, index: int, *, candidate: str, verdict: Verdict) -> Told:
        return self._search.tell(ordinal, index, candidate=candidate, verdict=verdict)

    def cancel(self, ordinal: int, *, exhausted: bool = False) -> int:
        return self._search.cancel(ordinal, exhausted=exhausted)

    def told(self) -> int:
        return self._search.told()

    def pending(self) -> int:
        return self._search.pending()

    def finished(self) -> FinishReason | None:
        return self._search.finished()


def test_a_search_of_an_older_package_is_driven_without_strategies() -> None:
    task = fresh_task(GREEDY)
    older = OlderSearch(GREEDY)
    task.tree = older  # type: ignore[assignment]
    assert drive(task, MemorySink()) == 0
    assert older.told() == GREEDY.budget
