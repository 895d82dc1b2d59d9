"""Answers that end at the token limit: twice the limit, then brevity, then a counted fault."""

from dataclasses import replace

import pytest

from kopt.testing.openai_server import Behaviour

pytestmark = pytest.mark.filterwarnings(
    "error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning"
)
SHORT = "```python\nimport torch\nclass ModelNew(torch.nn.Module):\n    A = 1\n```"


def long(tokens: int) -> str:
    """An answer of about so many tokens (of 4 characters) whose code is whole at its end only."""
    head = "```python\nimport torch\nclass ModelNew(torch.nn.Module):\n    A = '''"
    return head + "x" * (4 * tokens - len(head) - 30) + "'''\n    B = 2\n```"


def briefly(asked):
    """Is long until it is told to be brief."""
    is_told = "Begin anew and be brief" in asked.prompt
    return Behaviour(texts=[SHORT if is_told else long(1_000)])


@pytest.fixture(params=[False, True], ids=["whole", "stream"])
def stream(request) -> bool:
    return request.param


@pytest.fixture(params=["off", "json_schema", "tool"])
def structured(request) -> str:
    return request.param


def limits(bodies: list[dict], key: str = "max_tokens") -> list[int]:
    return [body[key] for body in bodies]


def test_phase_a_asks_with_twice_the_limit_and_the_same_prompt_and_seed(
    bench, run, stream, structured
):
    # About 150 tokens: cut at 100, whole at 200.
    async def scenario():
        settings = {"stream": stream, "structured": structured, "max_tokens": 100}
        async with bench(Behaviour(texts=[long(150)]), **settings) as it:
            answer = await it.write()
        return answer, it.server.bodies, it.said

    answer, bodies, said = run(scenario())
    assert len(answer.candidates) == 1
    assert limits(bodies) == [100, 200]
    assert bodies[0]["messages"] == bodies[1]["messages"]
    assert bodies[0]["seed"] == bodies[1]["seed"]
    cut, whole = answer.completions
    assert cut.finish == "length"
    assert "cut off at the token limit" in cut.fault
    assert whole.fault == ""
    assert cut.usage.tokens_out > 0
    assert whole.usage.tokens_out > 0
    assert answer.sampling["asked_again"] == [{"max_tokens": 200, "directive": False}]
    assert said == [
        "programmer openai: 1 of 2 answers held no candidate (cut off: 1)",
        "programmer openai: 1 answers were cut off at the token limit and asked for again; "
        "1 were whole then",
    ]


@pytest.mark.parametrize("num_lines", [1, 2_000])
def test_prompts_whose_reference_is_cut_are_counted(bench, run, request_of, num_lines):
    request = request_of()
    source = request.problem.source + "# one line more of it\n" * num_lines
    request = replace(request, problem=replace(request.problem, source=source))

    async def scenario():
        async with bench(Behaviour(texts=[SHORT]), prompt_tokens=4_000) as it:
            answers = [await it.programmer.write(request) for _ in range(2)]
        return [answer.messages[1].text for answer in answers], it.said

    texts, said = run(scenario())
    is_cut = num_lines > 1
    head = "## Reference\n\nIt is too long for this prompt: "
    assert [text.startswith(head) for text in texts] == [is_cut, is_cut]
    counted = (
        "programmer openai: 2 of 2 prompts left out a part of the reference, for which "
        "programmer.prompt_tokens has no room"
    )
    assert (counted in said) == is_cut


def test_phase_b_asks_at_the_doubled_limit_with_a_directive(bench, run, stream):
    async def scenario():
        settings = {"stream": stream, "token_limit_key": "max_completion_tokens"}
        async with bench(script=briefly, max_tokens=100, **settings) as it:
            return await it.write(), it.server.bodies

    answer, bodies = run(scenario())
    assert len(answer.candidates) == 1
    assert limits(bodies, "max_completion_tokens") == [100, 200, 200]
    first, _, last = (body["messages"][-1]["content"] for body in bodies)
    assert last.startswith(first)
    assert [message["role"] for message in bodies[2]["messages"]] == ["system", "user"]
    assert [bool(each.fault) for each in answer.completions] == [True, True, False]
    assert [each["directive"] for each in answer.sampling["asked_again"]] == [False, True]


def test_what_is_still_cut_then_is_a_fault_and_is_not_asked_again(bench, run):
    async def scenario():
        async with bench(Behaviour(texts=[long(1_000)]), max_tokens=100) as it:
            answer = await it.write()
        return answer, it.server.bodies, it.said

    answer, bodies, said = run(scenario())
    assert answer.candidates == ()
    assert limits(bodies) == [100, 200, 200]
    assert len(answer.completions) == 3
    assert said[-1].endswith(
        "1 answers were cut off at the token limit and asked for again; 0 were whole then"
    )


def test_only_the_completions_that_were_cut_are_asked_again(bench, run):
    async def scenario():
        texts = [SHORT, long(150), SHORT.replace("1", "3")]
        behaviours = [Behaviour(texts=texts), Behaviour(texts=[long(150)])]
        async with bench(*behaviours, max_tokens=100) as it:
            return await it.write(3), it.server.bodies

    answer, bodies = run(scenario())
    assert [body.get("n", 1) for body in bodies] == [3, 1]
    assert len(answer.candidates) == 3
    assert [bool(each.fault) for each in answer.completions] == [False, True, False, False]


def test_an_answer_whose_code_was_whole_before_the_limit_is_taken(bench, run):
    async def scenario():
        async with bench(Behaviour(texts=[f"{SHORT}\n{'talk ' * 500}"]), max_tokens=100) as it:
            return await it.write(), it.server.bodies

    answer, bodies = run(scenario())
    assert len(answer.candidates) == 1
    assert len(bodies) == 1


def test_reasoning_that_fills_the_limit_is_asked_again(bench, run):
    async def scenario():
        async with bench(Behaviour(kind="reasoning"), Behaviour(), max_tokens=100) as it:
            return await it.write(), it.server.bodies

    answer, bodies = run(scenario())
    assert len(answer.candidates) == 1
    assert limits(bodies) == [100, 200]


def test_a_server_that_refuses_the_doubled_limit_is_asked_to_be_brief_within_the_first(bench, run):
    def script(asked):
        if asked.body["max_tokens"] > 100:
            error = {"message": "max_tokens is too large: 200", "type": "invalid_request_error"}
            return Behaviour(kind="status", status=400, error=error)
        return briefly(asked)

    async def scenario():
        async with bench(script=script, max_tokens=100) as it:
            return await it.write(), it.server.bodies

    answer, bodies = run(scenario())
    assert len(answer.candidates) == 1
    assert limits(bodies) == [100, 200, 100]
    assert not answer.exhausted


def test_a_doubled_limit_beyond_the_context_exhausts_nothing(bench, run):
    def script(asked):
        if asked.number == 0:
            return Behaviour(texts=[long(1_000)])
        error = {"message": "maximum context length is 300 tokens", "type": "invalid_request_error"}
        return Behaviour(kind="status", status=400, error=error)

    async def scenario():
        async with bench(script=script, max_tokens=100) as it:
            return await it.write()

    answer = run(scenario())
    assert not answer.exhausted
    assert answer.candidates == ()
    assert len(answer.completions) == 3


def test_nothing_is_asked_again_where_no_limit_is_set_or_recovery_is_off(bench, run):
    async def scenario(**settings):
        async with bench(Behaviour(kind="cut"), **settings) as it:
            await it.write()
            return len(it.server.bodies)

    assert run(scenario()) == 1
    assert run(scenario(max_tokens=100, truncation="off")) == 1


def test_an_answer_over_the_byte_limit_is_not_asked_again(bench, run):
    async def scenario():
        behaviour = Behaviour(texts=["x" * 5_000])
        async with bench(behaviour, max_tokens=10_000, max_answer_bytes=1_000) as it:
            return await it.write(), len(it.server.bodies)

    answer, asked = run(scenario())
    assert asked == 1
    assert "programmer.max_answer_bytes" in answer.completions[0].fault
