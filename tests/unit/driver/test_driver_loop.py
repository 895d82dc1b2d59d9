"""The driver: every slot is told or cancelled once, whatever fails; a dead driver's run goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict

import pytest

from kopt.candidate import Candidate
from kopt.data.fold import RunState, fold
from kopt.data.results import result_rows
from kopt.driver.limits import Limits
from kopt.driver.loop import Driver, Pace
from kopt.driver.replay import replay, resumed_task
from kopt.driver.task import SearchSpec, SearchTask
from kopt.driver.verdicts import SharedVerdicts
from kopt.errors import ProblemError, ProgrammerUnavailable, StoreError, WorkerLost
from kopt.evaluation import Evaluation, from_json
from kopt.events import ExpansionAsked, Told
from kopt.ports import Answer, Target, WriteRequest
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.search.config import BestOfNConfig, MctsConfig, SearchConfig
from kopt.search.searches import create_search
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    MemorySink,
    ScriptedProgrammer,
    fresh_candidates,
    hashed_verdict,
    source_candidate,
)

TARGET = Target(device="cpu", name="test", arch="x86_64", languages=("torch",))
MCTS = MctsConfig(iterations=10, candidates=2)
BEST_OF_N = BestOfNConfig(iterations=10, candidates=2)


def spec(config: SearchConfig, *, name: str = "set/one", seed: int = 0) -> SearchSpec:
    return SearchSpec(
        problem=Problem(name=name, source=f"# {name}"),
        arm="arm",
        seed=seed,
        policy=config.kind,
        policy_config={"search": config.model_dump(), "reward": asdict(RewardRule())},
    )


def fresh_task(config: SearchConfig, *, name: str = "set/one", seed: int = 0) -> SearchTask:
    return SearchTask(
        spec=spec(config, name=name, seed=seed),
        tree=create_search(config, rule=RewardRule(), seed=seed),
    )


def drive(
    tasks: list[SearchTask],
    sink: MemorySink,
    *,
    programmer: ScriptedProgrammer | None = None,
    evaluator: InstantEvaluator | None = None,
    pace: Pace | None = None,
    limits: Limits | None = None,
    verdicts: SharedVerdicts | None = None,
) -> int:
    driver = Driver(
        tasks,
        programmer=programmer or ScriptedProgrammer(),
        evaluator=evaluator or InstantEvaluator(),
        sink=sink,
        clock=ManualClock(),
        target=TARGET,
        pace=pace or Pace(max_in_flight=4),
        limits=limits,
        verdicts=verdicts,
    )
    return asyncio.run(driver.run())


def assert_each_slot_is_told_or_cancelled_once(state: RunState) -> None:
    for search in state.searches.values():
        for expansion in search.expansions.values():
            if expansion.cancelled is None:
                assert sorted(expansion.told) == list(range(expansion.asked.n))


@pytest.mark.parametrize("config", [MCTS, BEST_OF_N], ids=["mcts", "best_of_n"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_a_fleet_spends_each_budget_exactly(config: SearchConfig, *, deterministic: bool) -> None:
    sink = MemorySink()
    tasks = [fresh_task(config, name=f"set/{name}") for name in "abc"]
    pace = Pace(max_in_flight=5, deterministic=deterministic)
    assert drive(tasks, sink, pace=pace) == 0
    state = fold(sink.records)
    assert_each_slot_is_told_or_cancelled_once(state)
    assert state.ended is not None
    for search in state.searches.values():
        assert search.ended is not None
        assert search.ended.reason == "budget"
        assert sum(len(expansion.told) for expansion in search.expansions.values()) == 20


def test_a_search_has_no_more_in_flight_than_its_share() -> None:
    sink = MemorySink()
    pace = Pace(max_in_flight=6, max_per_search=2)
    assert (
        drive([fresh_task(BEST_OF_N, name=f"set/{name}") for name in "abc"], sink, pace=pace) == 0
    )
    in_flight: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for record in sink.records:
        match record.body:
            case ExpansionAsked():
                in_flight[record.search] += 1
                most[record.search] = max(most[record.search], in_flight[record.search])
            case Told(index=1):
                in_flight[record.search] -= 1
    assert set(most.values()) == {2}
    assert len(most) == 3


def test_every_tree_replays_from_the_journal() -> None:
    sink = MemorySink()
    tasks = [fresh_task(MCTS, name=f"set/{name}", seed=3) for name in "ab"]
    drive(tasks, sink)
    trees = replay(fold(sink.records))
    assert [each.tree.nodes() for each in trees] == [task.tree.nodes() for task in tasks]


def test_a_journal_that_was_tampered_with_does_not_replay() -> None:
    sink = MemorySink()
    drive([fresh_task(MCTS)], sink)
    state = fold(sink.records)
    (search,) = state.searches.values()
    told = next(step for step in search.operations if step.kind == "told")
    search.operations[search.operations.index(told)] = type(told)(
        **{**asdict(told), "reward": told.reward + 1.0}  # type: ignore[arg-type]
    )
    with pytest.raises(StoreError, match="does not replay"):
        replay(state)


def test_a_candidate_written_twice_is_judged_once() -> None:
    def same(request: WriteRequest) -> Answer:
        one = source_candidate("class ModelNew: ...")
        return Answer(candidates=(one,) * request.expansion.num_candidates)

    sink, evaluator = MemorySink(), InstantEvaluator()
    drive([fresh_task(BEST_OF_N)], sink, programmer=ScriptedProgrammer(same), evaluator=evaluator)
    assert len(evaluator.calls) == 1
    assert [event.cached for event in sink.bodies("verdict")].count(False) == 1


def test_a_programmer_with_nothing_more_closes_the_node_and_ends_the_search() -> None:
    def three_in_all(request: WriteRequest) -> Answer:
        if request.parent is not None:
            return Answer(candidates=(), exhausted=True, note="no neighbours")
        answer = fresh_candidates(request)
        left = max(0, 3 - request.expansion.first_child)
        return Answer(candidates=answer.candidates[:left], exhausted=left <= 2)

    sink = MemorySink()
    programmer = ScriptedProgrammer(three_in_all)
    assert drive([fresh_task(MCTS)], sink, programmer=programmer) == 0
    (search,) = fold(sink.records).searches.values()
    assert search.ended is not None
    assert search.ended.reason in ("exhausted", "all_terminal")
    assert sum(len(expansion.told) for expansion in search.expansions.values()) == 3


def test_a_broken_problem_fails_its_search_and_the_fleet_goes_on() -> None:
    def refuse(problem: Problem, candidate: Candidate) -> object:
        if problem.name == "set/bad":
            raise ProblemError(problem.name, "no class Model")
        return hashed_verdict(problem, candidate)

    sink = MemorySink()
    tasks = [fresh_task(MCTS, name="set/bad"), fresh_task(MCTS, name="set/good")]
    assert drive(tasks, sink, evaluator=InstantEvaluator(refuse)) == 1  # type: ignore[arg-type]
    state = fold(sink.records)
    assert_each_slot_is_told_or_cancelled_once(state)
    bad, good = (state.searches[f"set/{name}/arm/0"].ended for name in ("bad", "good"))
    assert bad is not None
    assert bad.failed
    assert "no class Model" in bad.reason
    assert good is not None
    assert good.reason == "budget"


@pytest.mark.parametrize("error", [WorkerLost("w", "died"), ProgrammerUnavailable("p", "down")])
def test_setbacks_in_a_row_fail_the_search(error: Exception) -> None:
    def fail(request: WriteRequest) -> Answer:
        raise error

    sink = MemorySink()
    programmer = ScriptedProgrammer(fail)
    assert drive([fresh_task(MCTS)], sink, programmer=programmer) == 1
    (search,) = fold(sink.records).searches.values()
    assert search.ended is not None
    assert "in a row" in search.ended.reason
    assert len(programmer.requests) >= 3


def test_a_lost_worker_costs_its_slots_and_the_budget_is_still_spent() -> None:
    lost: list[str] = []

    def lose_some(problem: Problem, candidate: Candidate) -> object:
        if candidate.candidate_id.startswith(("0", "1")) and candidate.candidate_id not in lost:
            lost.append(candidate.candidate_id)
            raise WorkerLost("timing-0", "died")
        return hashed_verdict(problem, candidate)

    sink = MemorySink()
    config = BestOfNConfig(iterations=30, candidates=2)
    assert drive([fresh_task(config)], sink, evaluator=InstantEvaluator(lose_some)) == 0  # type: ignore[arg-type]
    assert lost
    (search,) = fold(sink.records).searches.values()
    assert sum(len(expansion.told) for expansion in search.expansions.values()) == 60


def test_a_limit_stops_the_fleet_and_says_so() -> None:
    sink = MemorySink()
    tasks = [fresh_task(MCTS, name=f"set/{name}") for name in "ab"]
    drive(tasks, sink, limits=Limits(candidates=8), pace=Pace(max_in_flight=2))
    state = fold(sink.records)
    reasons = [search.ended.reason for search in state.searches.values() if search.ended]
    assert "limits.candidates=8" in reasons
    kinds = Counter(record.body.kind for record in sink.records)
    assert kinds["told"] == 8


@pytest.mark.parametrize("config", [MCTS, BEST_OF_N], ids=["mcts", "best_of_n"])
def test_a_run_cut_anywhere_goes_on_with_nothing_lost_and_nothing_judged_twice(
    config: SearchConfig,
) -> None:
    whole = MemorySink()
    pace = Pace(max_in_flight=3, deterministic=True)
    drive([fresh_task(config)], whole, pace=pace)
    candidates = {event.candidate for event in whole.bodies("candidate_made")}
    for cut in range(len(whole.records)):
        sink = MemorySink(records=whole.records[:cut])
        sink.texts = dict(whole.texts)
        earlier = fold(sink.records)
        known = earlier.searches.get("set/one/arm/0")
        task = fresh_task(config)
        if known is not None:
            task = resumed_task(task.spec, known)
        judged = {
            event.candidate: from_json(event.eval)
            for event in sink.bodies("verdict")
            if not event.cached
        }
        evaluator = InstantEvaluator()
        answered = {(event.expansion, event.index) for event in sink.bodies("answer_received")}
        programmer = ScriptedProgrammer()
        problem_id = task.spec.problem.problem_id
        drive(
            [task],
            sink,
            programmer=programmer,
            evaluator=evaluator,
            pace=pace,
            verdicts=SharedVerdicts(
                {(problem_id, name): evaluation for name, evaluation in judged.items()}
            ),
        )
        again = {candidate for _, candidate in evaluator.calls}
        assert not again & set(judged), f"cut after {cut} events"
        asked_again = {(request.expansion.ordinal, 0) for request in programmer.requests}
        assert not asked_again & answered
        state = fold(sink.records)
        assert_each_slot_is_told_or_cancelled_once(state)
        assert {event.candidate for event in sink.bodies("candidate_made")} == candidates
        replay(state)


def test_a_full_disk_stops_the_fleet_with_its_reason() -> None:
    with pytest.raises(StoreError, match="no space"):
        drive([fresh_task(MCTS)], MemorySink(capacity=20))


def test_cancelling_the_driver_leaves_a_run_that_goes_on() -> None:
    sink = MemorySink()

    class Endless(InstantEvaluator):
        async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
            if len(self.calls) >= 6:
                await asyncio.Event().wait()
            return await super().evaluate(problem, candidate)

    async def stop_after_a_while() -> None:
        driver = Driver(
            [fresh_task(MCTS)],
            programmer=ScriptedProgrammer(),
            evaluator=Endless(),
            sink=sink,
            clock=ManualClock(),
            target=TARGET,
            pace=Pace(max_in_flight=4),
        )
        running = asyncio.create_task(driver.run())
        while len(sink.bodies("verdict")) < 6:
            await asyncio.sleep(0)
        running.cancel()
        await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stop_after_a_while())
    known = fold(sink.records).searches["set/one/arm/0"]
    task = fresh_task(MCTS)
    drive([resumed_task(task.spec, known)], sink)
    state = fold(sink.records)
    assert_each_slot_is_told_or_cancelled_once(state)
    assert sum(len(e.told) for e in state.searches["set/one/arm/0"].expansions.values()) == 20


@pytest.mark.parametrize("kind", [MctsConfig, BestOfNConfig], ids=["mcts", "best_of_n"])
def test_a_run_that_ended_goes_on_under_a_larger_budget_and_replays(
    kind: type[MctsConfig] | type[BestOfNConfig],
) -> None:
    sink = MemorySink()
    drive([fresh_task(kind(iterations=5, candidates=2))], sink)
    for iterations, told in ((8, 16), (11, 22)):
        known = fold(sink.records).searches["set/one/arm/0"]
        larger = spec(kind(iterations=iterations, candidates=2))
        drive([resumed_task(larger, known)], sink)
        state = fold(sink.records)
        (search,) = state.searches.values()
        assert sum(len(expansion.told) for expansion in search.expansions.values()) == told
        assert search.ended is not None
        replay(state)


def test_a_search_without_a_candidate_says_why() -> None:
    def refuse(request: WriteRequest) -> Answer:
        return Answer(candidates=(), exhausted=True, note="forward draws random numbers")

    sink = MemorySink()
    assert drive([fresh_task(MCTS)], sink, programmer=ScriptedProgrammer(refuse)) == 0
    (search,) = fold(sink.records).searches.values()
    assert search.ended is not None
    assert search.ended.reason == "exhausted: forward draws random numbers"
    (row,) = result_rows(fold(sink.records))
    assert row["root_cause"] == "no_candidate: forward draws random numbers"
