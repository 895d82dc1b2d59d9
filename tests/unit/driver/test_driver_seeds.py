"""Seeds: ROOT's first ideas, in whatever order answers come, and the programmer's after them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.candidate import Candidate
from kopt.data.results import result_rows
from kopt.driver.loop import Pace
from kopt.driver.seeds import SeededProgrammer
from kopt.errors import ProblemError, ProgrammerRefused, ProgrammerUnavailable
from kopt.ports import Answer, Completion, Usage, WriteRequest
from kopt.search.config import BestOfNConfig, MctsConfig
from kopt.testing.fakes import InstantEvaluator, ScriptedProgrammer, fresh_candidates
from kopt.testing.small_fleet import run_in_folder, small_problem, small_request, small_tasks

PROBLEM = small_problem()
SEEDS = tuple(
    Candidate(source=f"# seed {n}", language="torch", programmer="seed") for n in range(3)
)


def write(inner: ScriptedProgrammer, asked: WriteRequest) -> Answer:
    return asyncio.run(SeededProgrammer(inner, {PROBLEM.problem_id: SEEDS}).write(asked))


@pytest.mark.parametrize(
    ("first", "wanted", "given", "asked_for"),
    [
        (0, 2, SEEDS[:2], None),
        (0, 3, SEEDS, None),
        (2, 2, SEEDS[2:], (0, 1)),  # slot 2 is a seed, slot 3 the programmer's idea 0
        (0, 5, SEEDS, (0, 2)),
        (3, 2, (), (0, 2)),
        (6, 2, (), (3, 2)),
    ],
)
def test_slots_decide_what_is_given_and_what_is_written(
    first: int,
    wanted: int,
    given: tuple[Candidate, ...],
    asked_for: tuple[int, int] | None,
) -> None:
    inner = ScriptedProgrammer()
    answer = write(inner, small_request(first=first, wanted=wanted))
    assert answer.candidates[: len(given)] == given
    assert len(answer.candidates) == wanted
    written = [(r.expansion.first_child, r.expansion.num_candidates) for r in inner.requests]
    assert written == ([] if asked_for is None else [asked_for])


def test_nodes_below_root_and_other_problems_know_of_no_seeds() -> None:
    inner = ScriptedProgrammer()
    below = small_request(first=0, wanted=2, node=4)
    other = replace(small_request(first=0, wanted=2), problem=small_problem("set/two"))
    write(inner, below)
    write(inner, other)
    assert inner.requests == [below, other]


def test_what_the_rest_costs_and_says_is_kept() -> None:
    said = (Completion(text="words", usage=Usage(tokens_in=3)),)

    def script(asked: WriteRequest) -> Answer:
        return replace(fresh_candidates(asked), exhausted=True, completions=said, note="no more")

    answer = write(ScriptedProgrammer(script), small_request(first=2, wanted=2))
    assert (answer.completions, answer.exhausted, answer.note) == (said, True, "no more")


def test_seeds_are_judged_though_the_programmer_cannot_write_the_rest() -> None:
    def fail(asked: WriteRequest) -> Answer:
        raise ProgrammerUnavailable("openai", "no answer")

    answer = write(ScriptedProgrammer(fail), small_request(first=2, wanted=2))
    assert answer.candidates == SEEDS[2:]
    assert answer.note == "programmer openai cannot write: no answer"
    with pytest.raises(ProgrammerUnavailable):
        write(ScriptedProgrammer(fail), small_request(first=3, wanted=2))


def test_a_broken_problem_is_not_hidden_by_seeds() -> None:
    def fail(asked: WriteRequest) -> Answer:
        raise ProblemError("set/one", "it does not import")

    with pytest.raises(ProblemError):
        write(ScriptedProgrammer(fail), small_request(first=2, wanted=2))


@pytest.mark.parametrize("pace", [Pace(max_in_flight=8), Pace(max_in_flight=1)])
def test_a_search_judges_every_seed_once_within_its_budget(tmp_path: Path, pace: Pace) -> None:
    evaluator = InstantEvaluator()
    state = run_in_folder(
        tmp_path,
        small_tasks(MctsConfig(iterations=10, candidates=2)),
        programmer=SeededProgrammer(ScriptedProgrammer(), {PROBLEM.problem_id: SEEDS}),
        evaluator=evaluator,
        pace=pace,
    )
    judged = [candidate for _, candidate in evaluator.calls]
    assert len(judged) == len(set(judged)) == 20
    assert {seed.candidate_id for seed in SEEDS} <= set(judged)
    (row,) = result_rows(state)
    assert (row["candidates"], row["programmer"]) == (20, "scripted")
    assert (row["answers"], row["cost_usd"]) == (0, 0.0)


def test_a_programmer_that_refuses_ends_the_search_after_its_seeds(tmp_path: Path) -> None:
    def refuse(asked: WriteRequest) -> Answer:
        raise ProgrammerRefused("openai", "no key")

    state = run_in_folder(
        tmp_path,
        small_tasks(BestOfNConfig(iterations=10, candidates=2)),
        programmer=SeededProgrammer(ScriptedProgrammer(refuse), {PROBLEM.problem_id: SEEDS}),
        evaluator=InstantEvaluator(),
    )
    (search,) = state.searches.values()
    assert sum(len(expansion.told) for expansion in search.expansions.values()) == 3
    assert search.ended is not None
    assert search.ended.reason == "failed: programmer openai cannot write: no key"
