"""Prompts of the roles: what they are told, how their words are read, how long they get."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kopt.candidate import Candidate
from kopt.evidence import Evidence, KernelEvidence, Rule
from kopt.memory.entry import entry_of
from kopt.memory.iteration import Iteration
from kopt.memory.recall import Memory
from kopt.ports import Attempt, ExtractionRequest, Message, Telling, WriteRequest
from kopt.prompts.agent_author import author_prompt, verdict_message
from kopt.prompts.agent_conversation import bounded, said
from kopt.prompts.agent_plan import Plan, Query, read_step
from kopt.prompts.agent_planner import planner_prompt, query_message
from kopt.prompts.agent_queries import answer_to, aspects_of
from kopt.prompts.agent_summary import read_summary, summary_prompt
from kopt.prompts.tokens import prompt_tokens
from kopt.testing.fakes import correct, evaluation_of, source_candidate
from kopt.testing.small_fleet import small_request
from kopt.verdict import Crashed

PLAN = {"direction": "vector loads", "change": "load four at once", "hints": ["align", 3]}
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def attempt(candidate: Candidate, request: WriteRequest, *, failed: bool = False) -> Attempt:
    verdict = Crashed(stage="correctness", log="boom") if failed else correct(1.5)
    evaluation = evaluation_of(verdict, problem=request.problem, candidate=candidate)
    return Attempt(candidate=candidate, evaluation=evaluation)


def profiled_request() -> WriteRequest:
    request = small_request(first=0, wanted=1)
    kernel = KernelEvidence(
        name="softmax_kernel",
        owner="user",
        launches=1,
        time_us=90.0,
        share=1.0,
        metrics={SM: 20.0, MEMORY: 70.0, "launch__registers_per_thread": 64.0},
        registers=64,
        rules=(
            Rule(
                name="UncoalescedGlobalAccess",
                section="SourceCounters",
                kind="OPT",
                message="half of each sector is unused",
                speedup_pct=40.0,
            ),
        ),
    )
    evidence = Evidence(device="NVIDIA H200", arch="sm_90", level="ncu", kernels=(kernel,))
    parent = attempt(source_candidate("class ModelNew: ...\n", strategy="first"), request)
    return replace(
        request,
        expansion=replace(request.expansion, mode="optimize", parent="p"),
        parent=replace(parent, evidence=evidence),
        telling=Telling(feedback="rules"),
        memory=Memory(
            entries=(
                entry_of("learnings", "vector loads gain where rows are long"),
                entry_of("errors_corrections", "persistent kernels lose on small grids"),
            )
        ),
    )


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (json.dumps({"plan": PLAN}), "plan"),
        (f"Well.\n```json\n{json.dumps(PLAN)}\n```", "plan"),
        ('{"query": "profile", "aspect": "rules"}', Query(kind="profile", words="rules")),
        ('{"Query": "Memory", "words": "loads"}', Query(kind="memory", words="loads")),
        (
            '{"query": "weather"}',
            "there is no query of that kind; there are: profile, source, memory",
        ),
        ('{"thought": 1}', "an object that is neither a plan (`direction`, `change`) nor a query"),
        ("I would vectorise.", "no JSON object"),
        ('<think>{"plan": 1}', "no JSON object (it ended while it was reasoning)"),
    ],
)
def test_a_planners_words_are_read(text: str, step: object) -> None:
    read = read_step(text)
    if step == "plan":
        assert read == Plan(direction="vector loads", change="load four at once", hints=("align",))
    else:
        assert read == step


def test_a_plan_without_a_direction_takes_its_changes_first_sentence() -> None:
    read = read_step('{"plan": {"change": ["Fuse the scale.", "Drop a load."]}}')
    assert isinstance(read, Plan)
    assert (read.direction, read.change) == ("Fuse the scale.", "Fuse the scale. Drop a load.")


def test_a_plan_of_a_megabyte_is_cut() -> None:
    read = read_step(json.dumps({"plan": {"direction": "x " * 500_000, "change": "y" * 10**6}}))
    assert isinstance(read, Plan)
    assert len(read.direction) < 200
    assert len(read.change) < 2_000


def test_the_planner_is_told_the_profile_and_may_ask_for_more() -> None:
    system, user = planner_prompt(profiled_request(), max_queries=3, tokens=16_000)
    assert system.text.startswith("You plan changes")
    assert "leave them to the libraries" in system.text
    assert "memory-bound" in user.text
    assert "UncoalescedGlobalAccess" in user.text
    assert '"optimization_strategy"' in user.text
    assert "up to 3 times" in user.text
    assert user.text.endswith("}}")


def test_without_a_profile_no_aspect_is_offered() -> None:
    request = replace(profiled_request(), telling=Telling(feedback="none"))
    assert aspects_of(request) == ()
    _, user = planner_prompt(request, max_queries=3, tokens=16_000)
    assert '"aspect"' not in user.text
    assert "UncoalescedGlobalAccess" not in user.text
    asked = Query(kind="profile", words="rules")
    assert answer_to(asked, request) == "There is no profile of this version."


def test_a_planner_without_queries_is_offered_none() -> None:
    _, user = planner_prompt(profiled_request(), max_queries=0, tokens=16_000)
    assert '"query"' not in user.text


def test_collapsed_directions_and_other_plans_are_told() -> None:
    _, user = planner_prompt(
        profiled_request(),
        beside=["split k"],
        collapsed=["tile sizes", "num warps"],
        max_queries=1,
        tokens=16_000,
    )
    assert "(tile sizes; num warps)" in user.text
    assert "Plans made beside yours, from the same version: split k." in user.text


@pytest.mark.parametrize(
    ("aspect", "words"),
    [
        ("optimization_strategy", "Kernel `softmax_kernel`: memory-bound"),
        ("throughput", "compute 20.0 %, memory 70.0 %"),
        ("rules", "half of each sector is unused"),
        ("launch", "64 registers a thread"),
        ("occupancy", "launch__registers_per_thread = 64"),
        ("multi_kernel_summary", "`softmax_kernel`: the version's own, 1 launch, 90.0 us, 100 %"),
        ("scheduler", "The profile has no such figures; it has: optimization_strategy, rules"),
        ("colour", "The profile has no such figures; it has: optimization_strategy, rules"),
    ],
)
def test_each_aspect_is_answered_from_the_profile(aspect: str, words: str) -> None:
    text = answer_to(Query(kind="profile", words=aspect), profiled_request())
    assert words in text


def test_the_memory_is_searched_by_words() -> None:
    request = profiled_request()
    found = answer_to(Query(kind="memory", words="Vector loads?"), request)
    assert found == "- vector loads gain where rows are long"
    assert answer_to(Query(kind="memory", words="tensor"), request).startswith("Nothing about that")


def test_the_last_query_is_answered_with_a_word_that_it_was_the_last() -> None:
    text = query_message(Query(kind="source"), profiled_request(), left=0)
    assert "class ModelNew" in text
    assert "No query is left" in text


def test_an_executor_is_told_its_plan_and_the_contract() -> None:
    plan = Plan(direction="vector loads", change="load four at once", hints=("align",))
    system, user = author_prompt(
        profiled_request(), author="executor", plan=plan, idea=0, tokens=24_000
    )
    assert system.text.startswith("You carry out a plan.")
    assert "## Contract" in system.text
    assert "Approach: vector loads" in user.text
    assert "- align" in user.text
    assert "class ModelNew" in user.text
    assert "UncoalescedGlobalAccess" not in user.text, "the plan has what is needed of it"


def test_codegen_is_told_to_leave_libraries_or_to_replace_them() -> None:
    request = small_request(first=0, wanted=1)
    keeps, replaces = (
        author_prompt(
            request, author="codegen", plan=None, idea=0, tokens=24_000, libraries=libraries
        )[0].text
        for libraries in ("keep", "replace")
    )
    assert "leave them to the libraries" in keeps
    assert "library calls as well" in replaces


@pytest.mark.parametrize("tokens", [4_000, 8_000])
def test_prompts_keep_to_their_budget(tokens: int) -> None:
    request = profiled_request()
    assert request.parent is not None
    long = source_candidate("class ModelNew: ...\n" + "# a line of the version\n" * 5_000)
    request = replace(
        request,
        problem=replace(request.problem, source="# a line of it\n" * 5_000),
        parent=replace(request.parent, candidate=long),
    )
    planner = planner_prompt(request, max_queries=3, tokens=tokens)
    assert prompt_tokens(planner) <= tokens * 1.1


def test_a_failed_version_comes_back_with_what_was_reported() -> None:
    request = small_request(first=0, wanted=1)
    failed = attempt(source_candidate("class ModelNew: ...\n"), request, failed=True)
    assert "boom" in verdict_message(failed.evaluation, idea=0)
    assert "find another cause" in verdict_message(failed.evaluation, idea=1)


def test_a_long_conversation_keeps_its_task_and_its_latest_words() -> None:
    talk: tuple[Message, ...] = (Message("system", "s"), Message("user", "task"))
    for number in range(20):
        talk = said(talk, answer=f"answer {number} " + "word " * 300, then=f"failed {number}")
    short = bounded(talk, tokens=1_000)
    assert [each.text for each in short[:2]] == ["s", "task"]
    assert short[-1].text == "failed 19"
    assert [each.role for each in short[2:]] == ["assistant", "user"] * (len(short[2:]) // 2)
    assert prompt_tokens(short) <= 1_000
    assert bounded(talk, tokens=10**6) == talk


def test_a_summary_becomes_entries_under_the_heading_of_its_outcome() -> None:
    items = [
        {
            "outcome": "gain",
            "direction": "vector loads",
            "signal": "half-used sectors",
            "insight": "1.4x: sectors are used whole.",
            "applies_when": "rows are long",
        },
        {"outcome": "failure", "direction": "split k", "insight": "races on the output"},
        {"outcome": "loss", "insight": ""},
        "no item",
    ]
    reading = read_summary(json.dumps({"items": items}))
    assert reading.fault == ""
    assert [(each.heading, each.text) for each in reading.entries or ()] == [
        (
            "successful_patterns",
            "vector loads [half-used sectors]: 1.4x: sectors are used whole; "
            "applies when: rows are long",
        ),
        ("errors_corrections", "split k: races on the output"),
    ]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"items": 3}', "no idea"])
def test_a_summary_that_cannot_be_read_is_a_fault(text: str) -> None:
    reading = read_summary(text)
    assert reading.entries is None
    assert reading.fault.startswith("no experience:")


def test_the_summarizer_is_shown_both_programs_and_the_notebook_within_its_budget() -> None:
    request = profiled_request()
    written = attempt(source_candidate("class ModelNew: 'after'\n" + "# x\n" * 20_000), request)
    asked = ExtractionRequest(
        problem=request.problem,
        target=request.target,
        iteration=Iteration(expansion=1, mode="optimize", tried=(), faults=("no code",)),
        parent=request.parent,
        written=(written,),
        known=(entry_of("learnings", "known already"),),
        seed=1,
    )
    messages = summary_prompt(asked, tokens=5_000)
    text = messages[1].text
    for words in ("The program before", "'after'", "known already", "no code", "UncoalescedGlobal"):
        assert words in text
    assert prompt_tokens(messages) <= 5_500
