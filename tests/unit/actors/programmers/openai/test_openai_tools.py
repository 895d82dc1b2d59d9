"""Reactive orchestration and the profiling agent against a scripted server: calls, budget, cost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kopt.errors import ProgrammerRefused
from kopt.ports import AnalysisRequest, Attempt, Telling
from kopt.prompts.tool_offers import offers_of
from kopt.testing.fake_profiler import uncoalesced
from kopt.testing.fakes import correct, evaluation_of, source_candidate
from kopt.testing.openai_server import Behaviour

CALL = Behaviour(kind="tool_calls", calls=("memory_coalescing",))
ANSWER = Behaviour()
REACTIVE = Telling(orchestration="reactive")
GIVEN = {
    "bottleneck": "Memory-bound",
    "severity": "high",
    "summary": "32 sectors a request.",
    "steps": ["Read neighbouring words.", {"step": "Load 16 bytes.", "gain": "1.3x"}],
}


@pytest.fixture
def optimise(request_of):
    """Returns a function: the request to optimise a candidate whose loads are uncoalesced."""

    def make(num_candidates: int = 1, *, telling: Telling = REACTIVE):
        made = request_of(num_candidates)
        candidate = source_candidate("class ModelNew: ...\n")
        evaluation = evaluation_of(correct(1.5), problem=made.problem, candidate=candidate)
        attempt = Attempt(
            candidate=candidate,
            evaluation=evaluation,
            evidence=uncoalesced(made.problem, candidate),
        )
        expansion = replace(
            made.expansion, mode="optimize", parent=candidate.candidate_id, parent_node=1
        )
        return replace(made, expansion=expansion, parent=attempt, telling=telling)

    return make


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_calls_a_tool_hears_what_it_found_and_answers(bench, run, optimise, stream) -> None:
    async def scenario():
        async with bench(CALL, ANSWER, stream=stream) as made:
            answer = await made.programmer.write(optimise())
            return answer, made.server.bodies

    answer, (first, second) = run(scenario())
    assert len(answer.candidates) == 1
    (completion,) = answer.completions
    (call,) = completion.tool_calls
    assert call["name"] == "memory_coalescing"
    assert "sectors" in call["result"]
    names = [each["function"]["name"] for each in first["tools"]]
    assert len(names) >= 15
    assert first["tool_choice"] == second["tool_choice"] == "auto"
    said, heard = second["messages"][-2:]
    assert said["tool_calls"][0]["id"] == heard["tool_call_id"]
    assert heard == {
        "role": "tool",
        "tool_call_id": heard["tool_call_id"],
        "content": call["result"],
    }
    # Nobody is told before he asks: that is the arm's point.
    assert call["result"] not in first["messages"][1]["content"]
    assert "can be called" in first["messages"][1]["content"]
    assert answer.sampling["tools"] == names


def test_tokens_of_all_turns_count(bench, run, optimise) -> None:
    async def scenario():
        price = {"prompt_usd_per_mtok": 1.0}
        async with bench(CALL, ANSWER, price=price) as made:
            answer = await made.programmer.write(optimise())
            return answer, made.server.bodies

    answer, bodies = run(scenario())
    characters = [
        sum(len(m["content"] or "") for m in body["messages"]) + 2 * (len(body["messages"]) - 1)
        for body in bodies
    ]
    # A token is four characters; messages are joined by two, a call's own message has none.
    assert answer.completions[0].usage.tokens_in == pytest.approx(sum(characters) / 4, abs=3)


def test_the_budget_ends_the_calls_and_the_model_is_told_to_answer(bench, run, optimise) -> None:
    two = Behaviour(kind="tool_calls", calls=("memory_coalescing", "occupancy", "sync_points"))

    async def scenario():
        async with bench(two, ANSWER, max_tool_calls=2) as made:
            answer = await made.programmer.write(optimise())
            return answer, made.server.bodies

    answer, (_, last) = run(scenario())
    assert len(answer.completions[0].tool_calls) == 2
    assert last["tool_choice"] == "none"
    assert "No call is left" in last["messages"][-1]["content"]
    assert len(answer.candidates) == 1


def test_a_model_that_calls_for_ever_is_a_faulty_completion(bench, run, optimise) -> None:
    async def scenario():
        async with bench(CALL, max_tool_calls=3) as made:
            answer = await made.programmer.write(optimise())
            return answer, len(made.server.bodies)

    answer, requests = run(scenario())
    assert requests == 4
    assert answer.candidates == ()
    assert "tool calls instead of text" in answer.completions[0].fault
    assert len(answer.completions[0].tool_calls) == 3


def test_an_unknown_tool_is_answered_with_those_there_are(bench, run, optimise) -> None:
    async def scenario():
        unknown = Behaviour(kind="tool_calls", calls=("rm_rf",))
        async with bench(unknown, ANSWER) as made:
            return await made.programmer.write(optimise())

    (completion,) = run(scenario()).completions
    assert "There is no tool 'rm_rf'; there are: " in completion.tool_calls[0]["result"]


def test_each_completion_has_a_conversation_of_its_own(bench, run, optimise) -> None:
    async def scenario():
        def script(asked):
            return ANSWER if asked.body["messages"][-1]["role"] == "tool" else CALL

        async with bench(script=script) as made:
            answer = await made.programmer.write(optimise(2))
            return answer, made.server.bodies

    answer, bodies = run(scenario())
    assert len(answer.candidates) == len(answer.completions) == 2
    assert [len(each.tool_calls) for each in answer.completions] == [1, 1]
    assert len(bodies) == 4


def test_a_turn_that_fails_after_a_call_keeps_what_was_paid(bench, run, optimise) -> None:
    async def scenario():
        broken = Behaviour(kind="status", status=500)
        async with bench(CALL, broken, max_retries=0) as made:
            return await made.programmer.write(optimise())

    (completion,) = run(scenario()).completions
    assert "after 1 tool calls" in completion.fault
    assert completion.usage.tokens_in > 0


def test_without_evidence_or_in_another_arm_no_tool_is_offered(optimise, request_of) -> None:
    request = optimise()
    assert offers_of(request) is not None
    assert offers_of(replace(request, telling=Telling())) is None
    assert offers_of(replace(request_of(1), telling=REACTIVE)) is None
    assert request.parent is not None
    bare = replace(request, parent=replace(request.parent, evidence=None))
    assert offers_of(bare) is None


def analysis_request(optimise) -> AnalysisRequest:
    request = optimise(telling=Telling())
    return AnalysisRequest(
        problem=request.problem,
        target=request.target,
        attempt=request.parent,
        seed=3,
        telling=Telling(),
    )


def test_the_profiling_agent_condenses_a_profile(bench, run, optimise) -> None:
    async def scenario():
        text = f"Here it is:\n```json\n{json.dumps(GIVEN)}\n```"
        async with bench(Behaviour(texts=[text])) as made:
            answer = await made.programmer.analyse(analysis_request(optimise))
            return answer, made.server.bodies

    answer, (body,) = run(scenario())
    assert answer.analysis is not None
    assert (answer.analysis.bottleneck, answer.analysis.severity) == ("memory", "high")
    assert answer.analysis.steps == ("Read neighbouring words.", "Load 16 bytes.")
    assert answer.completion.usage.tokens_in > 0
    assert "tools" not in body
    assert "### Automated bottleneck analysis" in body["messages"][1]["content"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("I cannot tell.", "no JSON object"),
        ('{"bottleneck": "io", "severity": "high", "steps": ["a"]}', "`bottleneck` names none of"),
        ('{"bottleneck": "memory", "severity": "bad", "steps": ["a"]}', "`severity` names none of"),
        ('{"bottleneck": "memory", "severity": "high", "steps": []}', "`steps` lists none"),
    ],
)
def test_words_that_hold_no_analysis_are_a_fault_in_one_line(
    bench, run, optimise, text: str, fault: str
) -> None:
    async def scenario():
        async with bench(Behaviour(texts=[text])) as made:
            return await made.programmer.analyse(analysis_request(optimise))

    answer = run(scenario())
    assert answer.analysis is None
    assert fault in answer.completion.fault
    assert answer.completion.text == text


def test_an_analyst_whose_key_is_wrong_says_so(bench, run, optimise) -> None:
    async def scenario():
        async with bench(server={"key": "right"}) as made:
            await made.programmer.analyse(analysis_request(optimise))

    with pytest.raises(ProgrammerRefused):
        run(scenario())
