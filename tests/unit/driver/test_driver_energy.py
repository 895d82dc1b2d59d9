"""Energy: `measure` leaves the search as it was, byte for byte; `aware` breaks ties of speed."""

from __future__ import annotations

import asyncio
import math
from dataclasses import asdict, replace

import pytest

from kopt.candidate import Candidate
from kopt.data.fold import SearchState, evidence_cache, fold
from kopt.data.record import record_to_line
from kopt.driver.loop import Driver, Pace
from kopt.driver.profile_rule import EnergyMode, ProfileRule, ProfileWhen
from kopt.driver.profiles import Profiling
from kopt.driver.reference import reference_candidate
from kopt.driver.replay import replay
from kopt.driver.task import SearchSpec, SearchTask
from kopt.errors import ProfileFailed
from kopt.events import EvidenceTaken, Told
from kopt.evidence import Evidence
from kopt.ports import Answer, Target, Telling, WriteRequest
from kopt.problem import Problem
from kopt.prompts import build
from kopt.reward import RewardRule
from kopt.search.config import BestOfNConfig, MctsConfig
from kopt.search.searches import create_search
from kopt.testing.fake_profiler import InstantProfiler, uncoalesced, with_energy_of
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    MemorySink,
    ScriptedProgrammer,
    correct,
    source_candidate,
)
from kopt.testing.small_fleet import small_problem

TARGET = Target(device="cpu", name="test", arch="x86_64", languages=("torch",))
MCTS = MctsConfig(iterations=12, candidates=2)
EPSILON = 0.01
REFERENCE = reference_candidate(small_problem()).candidate_id


def energy_of(problem: Problem, candidate: Candidate) -> Evidence:
    """The reference takes 800 pJ; others 640 pJ, those called thrifty 200 pJ."""
    picojoules = 200.0 if "thrifty" in candidate.source else 640.0
    if candidate.candidate_id == REFERENCE:
        picojoules = 800.0
    return with_energy_of(uncoalesced(problem, candidate), picojoules=picojoules)


def run(
    *,
    energy: EnergyMode,
    config: MctsConfig | BestOfNConfig = MCTS,
    profiler: InstantProfiler | None = None,
    programmer: ScriptedProgrammer | None = None,
    evaluator: InstantEvaluator | None = None,
    when: ProfileWhen = "expanded",
) -> tuple[MemorySink, ScriptedProgrammer]:
    sink = MemorySink()
    programmer = programmer or ScriptedProgrammer()
    rule = RewardRule(energy_epsilon=EPSILON if energy == "aware" else 0.0)
    spec = SearchSpec(
        problem=small_problem(),
        arm="arm",
        seed=0,
        policy=config.kind,
        policy_config={"search": config.model_dump(mode="json"), "reward": asdict(rule)},
    )
    driver = Driver(
        [SearchTask(spec=spec, tree=create_search(config, rule=rule, seed=0))],
        programmer=programmer,
        evaluator=evaluator or InstantEvaluator(),
        sink=sink,
        clock=ManualClock(),
        target=TARGET,
        pace=Pace(max_in_flight=1, deterministic=True),
        profiling=Profiling(
            profiler=profiler or InstantProfiler(energy_of),
            rule=ProfileRule(when=when, energy=energy, telling=Telling(energy=energy == "aware")),
        ),
    )
    assert asyncio.run(driver.run()) == 0
    return sink, programmer


def lines_but_evidence(sink: MemorySink) -> list[bytes]:
    """The journal's own lines without those of evidence, renumbered."""
    kept = [r for r in sink.records if not isinstance(r.body, EvidenceTaken)]
    return [record_to_line(replace(record, seq=seq)) for seq, record in enumerate(kept)]


def search_of(sink: MemorySink) -> SearchState:
    (search,) = fold(sink.records).searches.values()
    return search


@pytest.mark.parametrize("when", ["none", "best", "expanded", "correct"])
def test_measuring_leaves_the_search_byte_for_byte_as_it_is(when: ProfileWhen) -> None:
    off, asked_off = run(energy="off", when=when)
    measured, asked_measured = run(energy="measure", when=when)
    assert lines_but_evidence(measured) == lines_but_evidence(off)
    assert [build(r) for r in asked_measured.requests] == [build(r) for r in asked_off.requests]
    assert (
        replay(fold(measured.records))[0].tree.nodes() == replay(fold(off.records))[0].tree.nodes()
    )
    num_correct = sum(
        evaluation["kind"] == "correct"
        for expansion in search_of(measured).expansions.values()
        for evaluation in expansion.verdicts.values()
    )
    assert len(measured.bodies("evidence")) == num_correct


def two_of_a_kind(request: WriteRequest) -> Answer:
    """One candidate and its thrifty twin."""
    start = request.expansion.first_child
    return Answer(
        candidates=tuple(
            source_candidate(f"# {word} {start}\nclass ModelNew: ...\n")
            for word in ("plain", "thrifty")
        )
    )


def test_aware_rewards_what_is_saved_and_no_more_than_half_a_tie() -> None:
    config = BestOfNConfig(iterations=1, candidates=2)
    sink, _ = run(
        energy="aware",
        config=config,
        programmer=ScriptedProgrammer(two_of_a_kind),
        evaluator=InstantEvaluator(lambda problem, candidate: correct(2.0)),
    )
    plain, thrifty = [body for body in sink.bodies("told") if isinstance(body, Told)]
    # 800 pJ / 640 pJ, and 800 pJ / 200 pJ whose logarithm, 1.386, is bounded to 0.5.
    assert (plain.energy_reduction, thrifty.energy_reduction) == (1.25, 4.0)
    assert plain.reward == pytest.approx(math.log(2.0) + 0.01 * math.log(1.25))
    assert thrifty.reward == pytest.approx(math.log(2.0) + 0.01 * 0.5)
    references = [b for b in sink.bodies("evidence") if isinstance(b, EvidenceTaken)]
    assert [event.candidate for event in references if event.is_reference] == [REFERENCE]


def test_a_faster_candidate_is_never_below_a_thriftier_one() -> None:
    def judge(problem: Problem, candidate: Candidate):
        return correct(2.0 if "thrifty" in candidate.source else 2.03)

    sink, _ = run(
        energy="aware",
        config=BestOfNConfig(iterations=1, candidates=2),
        programmer=ScriptedProgrammer(two_of_a_kind),
        evaluator=InstantEvaluator(judge),
    )
    plain, thrifty = [body for body in sink.bodies("told") if isinstance(body, Told)]
    assert plain.reward > thrifty.reward


def test_an_aware_tree_replays_and_its_reference_is_not_profiled_again() -> None:
    profiler = InstantProfiler(energy_of)
    sink, _ = run(energy="aware", profiler=profiler)
    state = fold(sink.records)
    assert replay(state)[0].ended == "budget"
    assert profiler.calls.count((small_problem().problem_id, REFERENCE)) == 1
    assert (small_problem().problem_id, REFERENCE) in evidence_cache(state)


def test_without_counters_aware_is_a_search_for_speed() -> None:
    def fails(problem: Problem, candidate: Candidate) -> Evidence:
        raise ProfileFailed("no counters here")

    for profiler in (InstantProfiler(fails), InstantProfiler()):  # none at all; none of energy
        sink, _ = run(energy="aware", profiler=profiler)
        plain, _ = run(energy="off")
        told = [b for b in sink.bodies("told") if isinstance(b, Told)]
        assert {body.energy_reduction for body in told} == {None}
        before = [b.reward for b in plain.bodies("told") if isinstance(b, Told)]
        assert [body.reward for body in told] == before
