"""Profiles in the loop: taken once, journalled, told to authors; no profiler stops a search."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from kopt.candidate import Candidate
from kopt.data.fold import RunState, evidence_cache, fold
from kopt.data.results import result_rows
from kopt.driver.evidence_desk import MAX_FAILURES
from kopt.driver.limits import Spent
from kopt.driver.loop import Driver, Pace
from kopt.driver.profile_rule import DeviceShare, ProfileRule
from kopt.driver.profiles import Profiling
from kopt.driver.replay import replay, resumed_task
from kopt.driver.task import SearchTask
from kopt.errors import ProfileFailed, StoreError, WorkerLost
from kopt.events import EvidenceTaken, FindingsMade, ProfileAnalysed, Told
from kopt.evidence import Evidence
from kopt.ports import Analyst, Attempt, Profiler, Target, Telling, WriteRequest
from kopt.problem import Problem
from kopt.search.config import BestOfNConfig, MctsConfig, SearchConfig
from kopt.testing.fake_profiler import ANALYSIS, InstantAnalyst, InstantProfiler, uncoalesced
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    MemorySink,
    ScriptedProgrammer,
    correct,
    evaluation_of,
)
from kopt.testing.small_fleet import small_tasks
from kopt.testing.virtual_time import run_in_virtual_time

TARGET = Target(device="cpu", name="test", arch="x86_64", languages=("torch",))
MCTS = MctsConfig(iterations=10, candidates=2)


def drive(
    tasks: list[SearchTask],
    sink: MemorySink,
    *,
    profiler: Profiler | None = None,
    programmer: ScriptedProgrammer | None = None,
    analyst: Analyst | None = None,
    known: RunState | None = None,
    lines: list[str] | None = None,
    deterministic: bool = True,
    run: Callable[..., int] = asyncio.run,
    spent: Spent | None = None,
    **rule: object,
) -> ScriptedProgrammer:
    programmer = programmer or ScriptedProgrammer()
    driver_of = Driver(
        tasks,
        programmer=programmer,
        evaluator=InstantEvaluator(),
        sink=sink,
        clock=ManualClock(),
        target=TARGET,
        pace=Pace(max_in_flight=4, deterministic=deterministic),
        spent=spent,
        profiling=Profiling(
            profiler=profiler,
            analyst=analyst,
            rule=ProfileRule(**rule),  # type: ignore[arg-type]
            known={} if known is None else evidence_cache(known),
            warn=(lines if lines is not None else []).append,
        ),
    )
    assert run(driver_of.run()) == 0
    return programmer


def parents(programmer: ScriptedProgrammer, *, mode: str = "optimize") -> list[Attempt]:
    return [
        request.parent
        for request in programmer.requests
        if request.parent is not None and request.expansion.mode == mode
    ]


def kinds_but_profiles(sink: MemorySink) -> list[object]:
    profile = (EvidenceTaken, FindingsMade, ProfileAnalysed)
    return [(r.search, r.body) for r in sink.records if not isinstance(r.body, profile)]


def assert_all_told_or_cancelled(sink: MemorySink) -> None:
    state = fold(sink.records)
    for search in state.searches.values():
        assert search.ended is not None
        assert not search.open_expansions()
    replay(state)


def correct_ones(state: RunState) -> set[str]:
    (search,) = state.searches.values()
    return {
        expansion.candidates[index].candidate
        for expansion in search.expansions.values()
        for index, evaluation in expansion.verdicts.items()
        if evaluation["kind"] == "correct"
    }


def test_what_is_optimised_is_profiled_once_and_its_author_is_told() -> None:
    sink, profiler = MemorySink(), InstantProfiler()
    programmer = drive(small_tasks(MCTS), sink, profiler=profiler, when="expanded")
    told = parents(programmer)
    assert told
    assert all(attempt.evidence == uncoalesced(*_nothing()) for attempt in told)
    assert {attempt.findings[0].tool for attempt in told} == {"memory_coalescing"}
    optimised = {attempt.candidate.candidate_id for attempt in told}
    assert sorted(candidate for _, candidate in profiler.calls) == sorted(optimised)
    assert len(sink.bodies("findings")) == len(optimised)
    assert all(attempt.evidence is None for attempt in parents(programmer, mode="debug"))
    assert_all_told_or_cancelled(sink)


def _nothing() -> tuple[Problem, Candidate]:
    return Problem(name="p", source=""), Candidate(source="", language="torch")


def test_each_correct_candidate_is_profiled_after_it_was_told() -> None:
    sink, profiler = MemorySink(), InstantProfiler()
    drive(small_tasks(MCTS), sink, profiler=profiler, when="correct")
    found = correct_ones(fold(sink.records))
    assert {candidate for _, candidate in profiler.calls} == found
    assert len(profiler.calls) == len(found)
    told = {(b.expansion, b.index): n for n, b in enumerate(sink.bodies()) if isinstance(b, Told)}
    for number, body in enumerate(sink.bodies()):
        if isinstance(body, EvidenceTaken):
            assert told[body.expansion, body.index] < number


def test_best_profiles_each_that_is_the_fastest_so_far() -> None:
    sink, profiler = MemorySink(), InstantProfiler()
    drive(small_tasks(MCTS), sink, profiler=profiler, when="best")
    (search,) = fold(sink.records).searches.values()
    fastest, bests = 0.0, []
    for step in search.operations:
        if isinstance(step, Told):
            expansion = search.expansions[step.expansion]
            speedup = expansion.verdicts[step.index]["speedup"]
            if speedup is not None and speedup > fastest:
                fastest = speedup
                bests.append(expansion.candidates[step.index].candidate)
    assert [candidate for _, candidate in profiler.calls] == bests


def test_none_profiles_nothing_and_a_fleet_without_a_profiler_runs_as_ever() -> None:
    with_one, without, profiler = MemorySink(), MemorySink(), InstantProfiler()
    drive(small_tasks(MCTS), with_one, profiler=profiler, when="none")
    drive(small_tasks(MCTS), without, when="expanded")
    assert profiler.calls == []
    assert with_one.bodies() == without.bodies()


@pytest.mark.parametrize("feedback", ["rules", "raw", "none"])
def test_arms_without_tools_have_evidence_and_no_findings(feedback: str) -> None:
    sink = MemorySink()
    telling = Telling(feedback=feedback)  # type: ignore[arg-type]
    programmer = drive(
        small_tasks(MCTS), sink, profiler=InstantProfiler(), when="expanded", telling=telling
    )
    assert all(attempt.evidence and not attempt.findings for attempt in parents(programmer))
    assert sink.bodies("findings") == []
    assert {request.telling.feedback for request in programmer.requests} == {feedback}


def test_a_candidate_of_two_searches_is_profiled_once_in_the_run() -> None:
    sink, profiler = MemorySink(), InstantProfiler()

    def same(request: WriteRequest):
        return ScriptedProgrammer()._script(replace(request, search="one for both"))

    arms = [*small_tasks(MCTS, arm="a"), *small_tasks(MCTS, arm="b")]
    drive(arms, sink, profiler=profiler, programmer=ScriptedProgrammer(same), when="correct")
    assert len(profiler.calls) == len(set(profiler.calls))
    events = [b for b in sink.bodies("evidence") if isinstance(b, EvidenceTaken)]
    assert sum(event.cached for event in events) == len(events) / 2
    assert all(event.profiled_s == 0.0 for event in events if event.cached)


def test_a_profiler_that_hangs_is_given_up_named_and_counted() -> None:
    sink, profiler, lines = MemorySink(), InstantProfiler(), list[str]()

    class Hanging(InstantProfiler):
        async def profile(self, problem, candidate, evaluation) -> Evidence:
            profiler.calls.append((problem.problem_id, candidate.candidate_id))
            try:
                await asyncio.sleep(1e9)
            except asyncio.CancelledError:  # it does not heed the first one
                await asyncio.sleep(1e9)
            raise AssertionError

    drive(
        small_tasks(MCTS),
        sink,
        profiler=Hanging(),
        when="correct",
        lines=lines,
        run=run_in_virtual_time,
        limit_s=20.0,
    )
    assert len(profiler.calls) == MAX_FAILURES
    events = [b for b in sink.bodies("evidence") if isinstance(b, EvidenceTaken)]
    assert {(event.ref, event.reason) for event in events} == {(None, "no evidence within 20 s")}
    assert any("nothing more is profiled" in line for line in lines)
    assert any(f"{MAX_FAILURES} of {MAX_FAILURES} profiles failed" in line for line in lines)
    assert_all_told_or_cancelled(sink)


@pytest.mark.parametrize(
    "error",
    [ProfileFailed("ncu: no permission\nfor counters"), WorkerLost("profile-0", "died")],
    ids=["failed", "lost"],
)
def test_a_profile_that_fails_costs_its_findings_and_nothing_else(error: Exception) -> None:
    sink, plain, lines = MemorySink(), MemorySink(), list[str]()
    calls = list[str]()

    def every_other(problem: Problem, candidate: Candidate) -> Evidence:
        calls.append(candidate.candidate_id)
        if len(calls) % 2:
            raise error
        return uncoalesced(problem, candidate)

    programmer = drive(
        small_tasks(MCTS),
        sink,
        profiler=InstantProfiler(every_other),
        when="correct",
        lines=lines,
    )
    drive(small_tasks(MCTS), plain)
    assert kinds_but_profiles(sink) == [(r.search, r.body) for r in plain.records]
    failed = [b for b in sink.bodies("evidence") if isinstance(b, EvidenceTaken) and not b.ref]
    assert failed
    assert all(event.reason and "\n" not in event.reason for event in failed)
    assert any(attempt.evidence is None for attempt in parents(programmer))
    assert any("the search goes on without" in line for line in lines)


def test_a_journal_that_is_full_while_a_profile_is_kept_stops_the_fleet() -> None:
    sink = MemorySink()
    drive(small_tasks(MCTS), sink, profiler=InstantProfiler(), when="correct")
    first = next(n for n, body in enumerate(sink.bodies()) if isinstance(body, EvidenceTaken))
    with pytest.raises(StoreError, match="no space"):
        drive(
            small_tasks(MCTS),
            MemorySink(capacity=first),
            profiler=InstantProfiler(),
            when="correct",
        )


@pytest.mark.parametrize("cut", range(8, 60, 7))
def test_a_run_that_was_killed_goes_on_and_profiles_nothing_twice(cut: int) -> None:
    whole, profiler = MemorySink(), InstantProfiler()
    before = drive(small_tasks(MCTS), whole, profiler=profiler, when="expanded")
    killed = MemorySink(records=whole.records[:cut])
    killed.texts = whole.texts
    state = fold(killed.records)
    again = InstantProfiler()
    after = drive(
        small_tasks(MCTS, earlier=state), killed, profiler=again, known=state, when="expanded"
    )
    assert not {c for _, c in again.calls} & {c for _, c in evidence_cache(state)}
    assert_all_told_or_cancelled(killed)
    last = after.requests[-1]
    assert last.parent == before.requests[-1].parent
    assert sorted(map(repr, killed.bodies("told"))) == sorted(map(repr, whole.bodies("told")))


@pytest.mark.parametrize("when", ["correct", "best"])
@pytest.mark.parametrize("deterministic", [True, False])
def test_what_was_told_when_the_driver_died_is_profiled_by_the_next(when, deterministic) -> None:
    short = MctsConfig(iterations=4, candidates=2)
    whole = MemorySink()
    how = {"when": when, "deterministic": deterministic, "share": None}
    drive(small_tasks(short), whole, profiler=InstantProfiler(), **how)
    ended = [n for n, r in enumerate(whole.records) if r.body.kind == "search_ended"]
    late = 0
    for cut in range(4, ended[0]):
        killed = MemorySink(records=whole.records[:cut])
        killed.texts = whole.texts
        state = fold(killed.records)
        again = InstantProfiler()
        drive(small_tasks(short, earlier=state), killed, profiler=again, known=state, **how)
        known = evidence_cache(state)
        assert not {c for _, c in again.calls} & {c for _, c in known}
        if when == "correct":  # which are the fastest so far, the order of telling decides
            after = fold(killed.records)
            assert {c for _, c in evidence_cache(after)} == correct_ones(after)
        (search,) = state.searches.values()
        told = {e.candidates[i].candidate for e in search.expansions.values() for i in e.told}
        late += bool({c for _, c in again.calls} & told)
        assert_all_told_or_cancelled(killed)
    assert late > 0


def test_an_analysis_is_asked_for_once_and_its_cost_counts() -> None:
    sink, analyst, spent = MemorySink(), InstantAnalyst(), Spent()
    programmer = drive(
        small_tasks(MCTS),
        sink,
        profiler=InstantProfiler(),
        analyst=analyst,
        when="expanded",
        spent=spent,
    )
    assert {attempt.analysis for attempt in parents(programmer)} == {ANALYSIS}
    optimised = {attempt.candidate.candidate_id for attempt in parents(programmer)}
    assert len(analyst.requests) == len(optimised)
    assert spent.tokens == 55 * len(optimised)
    (row,) = result_rows(fold(sink.records))
    assert row["cost_usd"] == 0.25 * len(optimised)


def test_the_share_of_the_device_bounds_what_is_profiled() -> None:
    share = DeviceShare(0.5)
    assert share.has_room()
    share.profiled(4.0)
    assert not share.has_room()
    problem, candidate = _nothing()
    one = evaluation_of(correct(2.0), problem=problem, candidate=candidate)
    share.evaluated(one)  # 0.25 s verified and 0.5 s timed
    assert not share.has_room()
    for _ in range(5):
        share.evaluated(one)
    assert share.has_room()  # 4 s of 4 + 4.5 s


def test_what_the_share_leaves_out_is_counted_and_the_search_goes_on() -> None:
    clock_s = iter(range(0, 10**6, 100))

    class Slow(ManualClock):
        def monotonic_s(self) -> float:
            return float(next(clock_s))

    sink, lines, profiler = MemorySink(), list[str](), InstantProfiler()
    driver = Driver(
        small_tasks(MCTS),
        programmer=ScriptedProgrammer(),
        evaluator=InstantEvaluator(),
        sink=sink,
        clock=Slow(),
        target=TARGET,
        pace=Pace(max_in_flight=1),
        profiling=Profiling(
            profiler=profiler, rule=ProfileRule(when="correct", share=0.1), warn=lines.append
        ),
    )
    assert asyncio.run(driver.run()) == 0
    assert len(profiler.calls) == 1  # 100 s or more against some seconds of evaluation
    assert any("left out by findings.share" in line for line in lines)
    assert_all_told_or_cancelled(sink)


@pytest.mark.parametrize("config", [MCTS, BestOfNConfig(iterations=6, candidates=3)])
def test_with_many_in_flight_each_slot_is_still_told_once(config: SearchConfig) -> None:
    sink = MemorySink()

    class Slow(InstantProfiler):
        async def profile(self, problem, candidate, evaluation) -> Evidence:
            await asyncio.sleep(0.001 * (len(self.calls) % 5))
            return await InstantProfiler.profile(self, problem, candidate, evaluation)

    drive(
        small_tasks(config, seeds=(0, 1)),
        sink,
        profiler=Slow(),
        when="correct",
        deterministic=False,
        devices=2,
    )
    assert_all_told_or_cancelled(sink)
    candidates = [b.candidate for b in sink.bodies("evidence") if isinstance(b, EvidenceTaken)]
    assert len(candidates) == len(set(candidates))


def test_a_resumed_task_knows_its_profiles_and_its_fastest() -> None:
    sink = MemorySink()
    (task,) = small_tasks(MCTS)
    drive([task], sink, profiler=InstantProfiler(), when="best")
    records = [r for r in sink.records if r.body.kind not in ("search_ended", "run_ended")]
    (search,) = fold(records).searches.values()
    again = resumed_task(task.spec, search)
    assert again.profiles.keys() == search.profiles.keys()
    assert list(again.bests) == list(search.profiles)
