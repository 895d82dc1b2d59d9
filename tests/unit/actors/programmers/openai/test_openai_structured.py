"""Answers in a form that the server holds a model to, and servers that know of none."""

import json
from dataclasses import replace

import pytest

from kopt.actors.programmers.openai.stream import StreamReader
from kopt.actors.programmers.openai.structured import answer_schema
from kopt.errors import ProgrammerRefused
from kopt.ports import Telling
from kopt.testing.openai_server import Behaviour, in_turn, refusing

pytestmark = pytest.mark.filterwarnings(
    "error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(params=[False, True], ids=["whole", "stream"])
def stream(request) -> bool:
    return request.param


@pytest.fixture(params=["json_schema", "tool"])
def structured(request) -> str:
    return request.param


def test_each_completion_is_an_object_with_its_strategy(bench, run, stream, structured):
    async def scenario():
        async with bench(structured=structured, stream=stream) as it:
            return await it.write(3), it.server.bodies

    answer, (body,) = run(scenario())
    assert len(answer.candidates) == 3
    assert all(each.strategy.startswith("scale by ") for each in answer.candidates)
    assert {each.language for each in answer.candidates} == {"torch"}
    for completion in answer.completions:
        assert set(json.loads(completion.text)) == {"strategy", "language", "code"}
        assert completion.fault == ""
    assert body["n"] == 3
    if structured == "tool":
        (tool,) = body["tools"]
        assert tool["function"]["strict"] is True
        assert body["tool_choice"]["function"]["name"] == tool["function"]["name"]
    else:
        assert body["response_format"]["type"] == "json_schema"
        assert body["response_format"]["json_schema"]["strict"] is True
    assert "Answer with one JSON object" in answer.messages[0].text
    assert "strategy:" not in answer.messages[1].text


def test_nothing_is_asked_of_the_server_where_the_form_is_off(bench, run):
    async def scenario():
        async with bench() as it:
            return await it.write(), it.server.bodies

    _, (body,) = run(scenario())
    assert not {"response_format", "tools", "tool_choice"} & set(body)


def test_the_schema_bounds_what_it_can_and_has_no_pattern():
    schema = answer_schema(["triton", "torch"])
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["strategy", "language", "code"]
    fields = schema["properties"]
    assert fields["language"] == {"type": "string", "enum": ["triton", "torch"]}
    assert fields["strategy"] == {"type": "string", "maxLength": 600}
    # A bounded string holds no escape where xgrammar decodes: code needs its line breaks.
    assert fields["code"] == {"type": "string"}


def test_a_server_that_passes_over_the_form_is_read_all_the_same(bench, run, structured):
    async def scenario():
        async with bench(Behaviour(knows_forms=False), structured=structured) as it:
            return await it.write(2), it.said

    answer, said = run(scenario())
    assert len(answer.candidates) == 2
    assert said == []


def test_a_server_that_refuses_the_form_is_asked_without_and_that_is_said_once(
    bench, run, structured
):
    field = {"json_schema": "response_format", "tool": "tool_choice"}[structured]

    async def scenario():
        async with bench(script=refusing(field), structured=structured) as it:
            answers = [await it.write(2, seed=seed) for seed in range(3)]
            return answers, it.server.bodies, it.said

    answers, bodies, said = run(scenario())
    assert all(len(answer.candidates) == 2 for answer in answers)
    # The first is refused and asked again; the others never have the field.
    assert [field in body for body in bodies] == [True, False, False, False]
    assert said == [
        f"programmer openai: the endpoint does not take programmer.structured={structured} "
        f"(400: Unrecognized request argument supplied: {field}); it is asked without from here on"
    ]
    assert all("strategy: one or two sentences" in each.messages[0].text for each in answers)


def test_a_refusal_of_something_else_is_that_refusal(bench, run):
    error = {"message": "This account is not active.", "type": "invalid_request_error"}

    async def scenario():
        refusing_all = Behaviour(kind="status", status=400, error=error)
        async with bench(refusing_all, structured="json_schema") as it:
            with pytest.raises(ProgrammerRefused, match="This account is not active"):
                await it.write()
            return it.said

    assert run(scenario()) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"strategy": "", "language": "torch", "code": ""}', "JSON that cannot be read, or holds"),
        ('{"strategy": "s", "language": "torch", "code": "x = 1', "JSON that cannot be read"),
        ("\x00\x01 garbage {{{", "no code block"),
    ],
)
def test_an_object_without_a_module_is_a_counted_fault(bench, run, text, fault):
    async def scenario():
        behaviour = Behaviour(texts=[text], knows_forms=False)
        async with bench(behaviour, structured="json_schema") as it:
            answer = await it.write()
        return answer, it.said

    answer, said = run(scenario())
    assert answer.candidates == ()
    assert fault in answer.completions[0].fault
    assert said == ["programmer openai: 1 of 1 answers held no candidate (no code: 1)"]


def test_raw_control_characters_in_a_string_are_read(bench, run):
    code = "import torch\nclass ModelNew(torch.nn.Module):\n    A = 1\n"
    text = '{"strategy": "a\tb", "language": "torch", "code": "' + code + '"}'

    async def scenario():
        async with bench(Behaviour(texts=[text], knows_forms=False), structured="tool") as it:
            return await it.write()

    (candidate,) = run(scenario()).candidates
    assert candidate.source == code


def test_the_form_is_not_used_beside_tools_that_a_model_may_call(bench, run, request_of):
    async def scenario():
        async with bench(structured="json_schema") as it:
            asked = replace(request_of(), telling=Telling(orchestration="reactive"))
            await it.programmer.write(asked)
            await it.programmer.write(asked)
            return it.server.bodies, it.said

    bodies, said = run(scenario())
    assert all("response_format" not in body for body in bodies)
    assert said == [
        "programmer openai: programmer.structured=json_schema is not used where a model may call "
        "tools"
    ]


def test_a_refusal_by_one_of_several_requests_is_no_refusal_of_the_form(bench, run):
    script = in_turn(Behaviour(), Behaviour(kind="status", status=400), Behaviour())

    async def scenario():
        async with bench(script=script, structured="json_schema", completions="apart") as it:
            return await it.write(3), it.server.bodies

    answer, bodies = run(scenario())
    assert len(answer.candidates) == 2
    assert ["response_format" in body for body in bodies] == [True, True, True]


def test_arguments_without_end_are_cut_like_any_answer():
    reader = StreamReader(num_choices=1, max_answer_bytes=10_000)
    piece = {"index": 0, "function": {"name": "submit_kernel", "arguments": "x" * 1_000}}
    event = json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]})
    fed = 0
    while reader.feed(event):
        fed += 1
        assert fed < 100
    assert fed == 10  # 10,000 characters are no more than the limit; the next piece is
    (choice,) = reader.reply().choices
    assert choice.fault == "cut off after 10,000 bytes (programmer.max_answer_bytes)"
    assert len(choice.text) == 10_000
    assert not choice.is_cut
