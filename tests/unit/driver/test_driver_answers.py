"""Answers of models: each completion is journalled, what they cost is limited, a refusal ends."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from kopt.data.answers import answer_from_text, answer_to_text
from kopt.data.fold import SearchState, fold
from kopt.data.results import result_rows
from kopt.driver.limits import Limits, Spent
from kopt.driver.loop import Driver, Pace
from kopt.driver.task import SearchSpec, SearchTask
from kopt.errors import ProgrammerRefused
from kopt.ports import Answer, Completion, Message, Target, Usage, WriteRequest
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.search.config import BestOfNConfig
from kopt.search.searches import create_search
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    MemorySink,
    ScriptedProgrammer,
    fresh_candidates,
)
from kopt.testing.small_fleet import SMALL_TARGET, small_tasks

CONFIG = BestOfNConfig(iterations=10, candidates=2)


def answered(request: WriteRequest) -> Answer:
    """Three completions, the second without a candidate; 100 tokens read, 40 written, 0.5 USD."""
    made = fresh_candidates(request).candidates
    return Answer(
        candidates=made,
        messages=(Message("system", "rules"), Message("user", f"node {request.expansion.parent}")),
        sampling={"temperature": 0.5},
        completions=(
            Completion(text="one", finish="stop", usage=Usage(tokens_in=100, tokens_out=10)),
            Completion(
                text="two",
                finish="length",
                fault="no code block",
                usage=Usage(tokens_out=10, cost_usd=0.5),
            ),
            Completion(text="three", finish="stop", usage=Usage(tokens_out=20)),
        ),
    )


def run(
    script: ScriptedProgrammer,
    sink: MemorySink,
    *,
    limits: Limits | None = None,
    spent: Spent | None = None,
) -> SearchState:
    spec = SearchSpec(
        problem=Problem(name="set/one", source="# one"),
        arm="arm",
        seed=0,
        policy=CONFIG.kind,
        policy_config={"search": CONFIG.model_dump(), "reward": asdict(RewardRule())},
    )
    driver = Driver(
        [SearchTask(spec=spec, tree=create_search(CONFIG, rule=RewardRule(), seed=0))],
        programmer=script,
        evaluator=InstantEvaluator(),
        sink=sink,
        clock=ManualClock(),
        target=Target(device="cpu", name="test", arch="x86_64", languages=("torch",)),
        pace=Pace(max_in_flight=1),
        limits=limits,
        spent=spent,
    )
    asyncio.run(driver.run())
    (search,) = fold(sink.records).searches.values()
    return search


def test_each_completion_is_journalled_with_its_words_and_its_fault() -> None:
    sink = MemorySink()
    search = run(ScriptedProgrammer(answered), sink)
    answers = search.expansions[0].answers
    assert [sink.get_text(answers[index].text or "") for index in range(3)] == [
        "one",
        "two",
        "three",
    ]
    assert [answers[index].fault for index in range(3)] == ["", "no code block", ""]
    assert [answers[index].finish for index in range(3)] == ["stop", "length", "stop"]
    prompt = search.expansions[0].prompt
    assert prompt is not None
    assert prompt.tokens == 100
    assert prompt.sampling == {"temperature": 0.5}
    (row,) = result_rows(fold(sink.records))
    assert (row["answers"], row["answers_faulty"]) == (30, 10)
    assert (row["tokens_in"], row["tokens_out"], row["cost_usd"]) == (1000, 400, 5.0)


def test_completions_that_a_kill_cut_off_are_journalled_when_the_search_goes_on() -> None:
    whole = MemorySink()
    tasks = small_tasks(CONFIG)
    go_on(tasks, whole)
    (cut, *_) = [
        number
        for number, record in enumerate(whole.records)
        if record.body.kind == "answer_received" and record.body.index == 1
    ]
    killed = MemorySink(records=whole.records[:cut])
    killed.texts = dict(whole.texts)
    programmer = go_on(small_tasks(CONFIG, earlier=fold(killed.records)), killed)
    assert 0 not in [request.expansion.ordinal for request in programmer.requests]
    (before,), (after,) = result_rows(fold(whole.records)), result_rows(fold(killed.records))
    counted = ("answers", "answers_faulty", "tokens_in", "tokens_out", "cost_usd")
    assert [after[key] for key in counted] == [before[key] for key in counted]
    assert len(killed.bodies("prompt_sent")) == len(whole.bodies("prompt_sent"))
    (search,) = fold(killed.records).searches.values()
    assert sorted(search.expansions[0].answers) == [0, 1, 2]


def go_on(tasks: list[SearchTask], sink: MemorySink) -> ScriptedProgrammer:
    programmer = ScriptedProgrammer(answered)
    driver = Driver(
        tasks,
        programmer=programmer,
        evaluator=InstantEvaluator(),
        sink=sink,
        clock=ManualClock(),
        target=SMALL_TARGET,
        pace=Pace(max_in_flight=1),
    )
    assert asyncio.run(driver.run()) == 0
    return programmer


def test_a_kept_answer_comes_back_equal() -> None:
    request = WriteRequest(
        problem=Problem(name="p", source=""),
        target=Target(device="cpu", name="test", arch="x86_64", languages=("torch",)),
        search="s",
        arm="a",
        seed=0,
        expansion=create_search(CONFIG, rule=RewardRule(), seed=0).ask(1)[0],
        parent=None,
    )
    answer = answered(request)
    assert answer_from_text(answer_to_text(answer)) == answer


def test_tokens_are_a_limit_that_says_so() -> None:
    search = run(ScriptedProgrammer(answered), MemorySink(), limits=Limits(tokens=280))
    assert search.ended is not None
    assert search.ended.reason == "limits.tokens=280"  # 140 an answer: after two
    assert len(search.expansions) == 2


def test_money_is_a_limit_and_what_was_spent_before_counts() -> None:
    before = Spent(cost_usd=1.0)
    limits = Limits(cost_usd=2.0)
    search = run(ScriptedProgrammer(answered), MemorySink(), limits=limits, spent=before)
    assert search.ended is not None
    assert search.ended.reason == "limits.cost_usd=2"  # 0.5 an answer: after two more
    assert len(search.expansions) == 2


def test_a_programmer_that_refuses_ends_its_search_at_once() -> None:
    def refuse(request: WriteRequest) -> Answer:
        raise ProgrammerRefused("openai", "the key in OPENAI_API_KEY is not accepted")

    programmer = ScriptedProgrammer(refuse)
    search = run(programmer, MemorySink())
    assert search.ended is not None
    assert search.ended.failed
    assert "OPENAI_API_KEY" in search.ended.reason
    assert len(programmer.requests) == 1
