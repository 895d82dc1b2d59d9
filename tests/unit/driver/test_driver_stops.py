"""A search ends early by the user's rule, and the journal says which."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace

from kopt.candidate import Candidate
from kopt.data.fold import fold
from kopt.driver.limits import Limits
from kopt.driver.loop import Driver, Pace
from kopt.driver.stops import Headway, StopRule
from kopt.driver.task import SearchSpec, SearchTask
from kopt.ports import Target
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.search.config import BestOfNConfig
from kopt.search.searches import create_search
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    MemorySink,
    ScriptedProgrammer,
    correct,
)
from kopt.verdict import Incorrect, Verdict

TARGET = Target(device="cpu", name="test", arch="x86_64", languages=("torch",))
WRONG = Incorrect(check="values:signed_normal", detail="expected 1, found 2")


def near_light(speedup: float, *, share: float) -> Verdict:
    verdict = correct(speedup)
    timing = replace(verdict.timing, sol_us=share * verdict.timing.time_us)
    return replace(verdict, timing=timing)


def headway(*verdicts: Verdict) -> Headway:
    told = Headway()
    for verdict in verdicts:
        told.told(verdict)
    return told


def reasons(verdict: Verdict, *, stop: StopRule, limits: Limits | None = None) -> list[str]:
    """Run a search of 10 x 2, one expansion at a time, in which every candidate is alike."""
    config, sink = BestOfNConfig(iterations=10, candidates=2), MemorySink()

    def verdict_of(problem: Problem, candidate: Candidate) -> Verdict:
        del problem, candidate
        return verdict

    task = SearchTask(
        spec=SearchSpec(
            problem=Problem(name="set/one", source="# one"),
            arm="arm",
            seed=0,
            policy=config.kind,
            policy_config={"search": config.model_dump(), "reward": asdict(RewardRule())},
        ),
        tree=create_search(config, rule=RewardRule(), seed=0),
    )
    driver = Driver(
        [task],
        programmer=ScriptedProgrammer(),
        evaluator=InstantEvaluator(verdict_of),
        sink=sink,
        clock=ManualClock(),
        target=TARGET,
        pace=Pace(max_in_flight=1),
        stop=stop,
        limits=limits,
    )
    asyncio.run(driver.run())
    (search,) = fold(sink.records).searches.values()
    told = sum(len(expansion.told) for expansion in search.expansions.values())
    return [search.ended.reason if search.ended else "", str(told)]


def test_candidates_in_a_row_without_a_faster_one_are_counted() -> None:
    assert headway(correct(2.0), WRONG, correct(1.5)).told_since_best == 2
    assert headway(correct(2.0), WRONG, correct(2.5)).told_since_best == 0
    assert headway(WRONG, WRONG).told_since_best == 2


def test_an_idle_search_ends_after_so_many_expansions_worth() -> None:
    # The first of 2 is the best, 1 + 2 + 2 are none better: 5 >= 2 x 2 at the fourth ask.
    assert reasons(correct(1.5), stop=StopRule(idle_iterations=2)) == [
        "stop.idle_iterations=2",
        "6",
    ]


def test_a_search_at_the_speed_of_light_ends() -> None:
    verdict = near_light(3.0, share=0.96)
    assert reasons(verdict, stop=StopRule(sol_share=0.95)) == ["stop.sol_share=0.95", "2"]
    assert reasons(verdict, stop=StopRule(sol_share=0.97)) == ["budget", "20"]


def test_an_unknown_speed_of_light_stops_nothing() -> None:
    assert reasons(correct(3.0), stop=StopRule(sol_share=0.01)) == ["budget", "20"]


def test_the_devices_time_is_a_limit_that_says_so() -> None:
    # 0.25 + 0.5 s a candidate, 1.5 s an expansion: over 4 s after three of them.
    limits = Limits(gpu_s=4.0)
    # Every candidate of `best_of_n` is distinct, so that nothing is known before.
    assert reasons(correct(1.0), stop=StopRule(), limits=limits) == ["limits.gpu_s=4", "6"]
