"""The programmer against the scripted server: whatever it does is an answer, counted faults and
all, or one clear line."""

import pytest

from kopt.errors import ProgrammerRefused, ProgrammerUnavailable
from kopt.testing.openai_server import Behaviour

pytestmark = pytest.mark.filterwarnings(
    "error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning"
)
CODE = "```python\nimport torch\nclass ModelNew(torch.nn.Module):\n    A = {}\n```"


def code(number: int) -> str:
    return CODE.format(number)


@pytest.fixture(params=[False, True], ids=["whole", "stream"])
def stream(request) -> bool:
    return request.param


def test_two_completions_are_two_candidates_in_their_order(bench, run, stream):
    async def scenario():
        async with bench(Behaviour(texts=[code(1), code(2)]), stream=stream) as it:
            return await it.write(2), it.server, it.said

    answer, server, said = run(scenario())
    assert [candidate.source.split()[-1] for candidate in answer.candidates] == ["1", "2"]
    assert {candidate.programmer for candidate in answer.candidates} == {"openai"}
    assert [completion.text for completion in answer.completions] == [code(1), code(2)]
    assert [completion.finish for completion in answer.completions] == ["stop", "stop"]
    assert answer.note == ""
    assert not answer.exhausted
    assert answer.messages[-1].role == "user"
    (body,) = server.bodies
    assert body["messages"][-1]["content"] == answer.messages[-1].text
    assert answer.sampling["n"] == 2
    assert answer.sampling["seed"] == body["seed"]
    assert answer.sampling["endpoint"] == server.url
    assert said == []


def test_tokens_of_a_shared_prompt_are_counted_with_the_first(bench, run, stream):
    price = {
        "prompt_usd_per_mtok": 2.0,
        "cached_prompt_usd_per_mtok": 0.5,
        "completion_usd_per_mtok": 10.0,
    }

    async def scenario():
        async with bench(Behaviour(), stream=stream, price=price) as it:
            return await it.write(3)

    first, *others = (completion.usage for completion in run(scenario()).completions)
    # Half of the prompt was cached: (p/2 * 2.0 + p/2 * 0.5 + w * 10) / 1e6, p odd or even.
    cached = first.tokens_in // 2
    dollars = (first.tokens_in - cached) * 2.0 + cached * 0.5 + first.tokens_out * 10.0
    assert first.tokens_in > 0
    assert first.cost_usd == pytest.approx(dollars / 1e6)
    assert all(usage.tokens_in == usage.tokens_out == 0 for usage in others)


def test_a_server_that_reports_no_tokens_is_said_once(bench, run, stream):
    async def scenario():
        async with bench(Behaviour(usage=False), stream=stream) as it:
            answers = [await it.write(seed=seed) for seed in range(3)]
            return answers, it.said

    answers, said = run(scenario())
    assert all(answer.completions[0].usage.tokens_in == 0 for answer in answers)
    assert said == [
        "programmer openai: the endpoint reports no tokens: they and their cost count as 0"
    ]


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("html", "the body is not JSON but an HTML page"),
        ("empty_body", "the body is empty"),
        ("null_content", "an empty answer"),
        ("refusal", "the model refused: I cannot help."),
        ("content_filter", "held back by the server's content filter"),
        ("tool_calls", "tool calls instead of text: run"),
        ("reasoning", "reasoning alone (280 characters), no answer: cut off at the token limit"),
        ("cut", "cut off at the token limit"),
        ("wrong_json", "broken JSON"),
        ("truncated", ""),
        ("no_choices", "holds no choices"),
    ],
)
def test_an_answer_without_a_candidate_is_a_counted_fault(bench, run, stream, kind, fault):
    async def scenario():
        async with bench(Behaviour(kind=kind), stream=stream) as it:
            return await it.write(), it.server, it.said

    answer, server, said = run(scenario())
    assert answer.candidates == ()
    assert not answer.exhausted
    (completion,) = answer.completions
    assert fault in completion.fault
    assert "\n" not in completion.fault
    assert answer.note.startswith("1 of 1 answers held no candidate: ")
    assert len(server.served) == 1, "a fault is not asked again"
    assert "held no candidate" in said[-1] or said == []


def test_an_endless_answer_is_cut_and_counted(bench, run, stream):
    async def scenario():
        endless = Behaviour(kind="endless")
        async with bench(endless, stream=stream, max_answer_bytes=10_000) as it:
            return await it.write()

    (completion,) = run(scenario()).completions
    assert completion.finish == "length"
    assert "cut off after" in completion.fault
    assert len(completion.text) == (10_000 if stream else 0)


def test_prose_and_code_side_by_side(bench, run):
    texts = ["I would rather not.", code(1), "x" * 2_000]

    async def scenario():
        async with bench(Behaviour(texts=texts), max_answer_bytes=1_000) as it:
            return await it.write(3)

    answer = run(scenario())
    assert len(answer.candidates) == 1
    assert [bool(completion.fault) for completion in answer.completions] == [True, False, True]
    assert answer.note.startswith("2 of 3 answers held no candidate: ")


def test_a_candidate_that_comes_twice_is_one(bench, run):
    async def scenario():
        async with bench(Behaviour(texts=[code(1), code(2), code(1), code(1)])) as it:
            return await it.write(4)

    answer = run(scenario())
    assert len(answer.candidates) == 2
    faults = [completion.fault for completion in answer.completions]
    assert faults == ["", "", "same as completion 0", "same as completion 0"]
    assert answer.note == "2 of 4 answers held no candidate: same as completion 0 (2)"


def test_completions_that_are_missing_are_asked_for_apart(bench, run, stream):
    async def scenario():
        async with bench(Behaviour(num_choices=1), stream=stream) as it:
            return await it.write(3), it.server, it.said

    answer, server, said = run(scenario())
    assert len(answer.candidates) == 3
    assert [body.get("n", 1) for body in server.bodies] == [3, 1, 1]
    assert len(set(answer.sampling["seeds"])) == 3
    assert said == [
        "programmer openai: the endpoint gives 1 of 3 completions asked for together; "
        "programmer.completions=apart saves it one round"
    ]


def test_completions_apart_have_a_seed_each_and_the_same_order_every_time(bench, run):
    async def scenario(delays):
        def script(asked):
            return Behaviour(delay_s=delays[asked.number])

        async with bench(script=script, completions="apart") as it:
            return await it.write(3)

    early, late = run(scenario([0.03, 0.0, 0.015])), run(scenario([0.0, 0.03, 0.015]))
    assert early.candidates == late.candidates
    assert early.sampling["seeds"] == late.sampling["seeds"]
    assert len(set(early.sampling["seeds"])) == 3


def test_the_body_holds_what_is_set_and_nothing_else(bench, run):
    async def scenario(**config):
        async with bench(**config) as it:
            await it.write()
            return it.server.bodies[0]

    plain = run(scenario(seeded=False))
    assert set(plain) == {"model", "messages"}
    full = run(
        scenario(
            temperature=0.5,
            top_p=0.9,
            max_tokens=100,
            token_limit_key="max_completion_tokens",
            extra_body={"top_k": 5},
        )
    )
    assert full["temperature"] == 0.5
    assert full["top_p"] == 0.9
    assert full["max_completion_tokens"] == 100
    assert full["top_k"] == 5
    assert 0 <= full["seed"] < 2**31


@pytest.mark.parametrize("kind", ["drop", "drop_within", "status"])
def test_a_passing_error_is_asked_again_with_the_same_body(bench, run, stream, kind):
    async def scenario():
        behaviours = [Behaviour(kind=kind), Behaviour(kind="status", status=429), Behaviour()]
        async with bench(*behaviours, stream=stream, model="scripted") as it:
            return await it.write(2), it

    answer, it = run(scenario())
    assert len(answer.candidates) == 2
    assert [each.attempt for each in it.server.served] == [0, 1, 2]
    label = "503" if kind == "status" else "connection"
    assert it.said == [f"programmer openai: 1 requests, retries: 2 (429: 1, {label}: 1)"]


def test_an_error_in_the_body_is_asked_again(bench, run, stream):
    async def scenario():
        async with bench(Behaviour(kind="error_in_body"), Behaviour(), stream=stream) as it:
            return await it.write(), len(it.server.served)

    answer, served = run(scenario())
    assert len(answer.candidates) == 1
    assert served == 2


def test_retries_used_up_are_one_line_with_the_last_reason(bench, run):
    async def scenario():
        async with bench(Behaviour(kind="status", status=502)) as it:
            with pytest.raises(ProgrammerUnavailable) as caught:
                await it.write()
            return caught.value, it.server

    error, server = run(scenario())
    assert not isinstance(error, ProgrammerRefused)
    assert str(error) == (
        f"programmer openai cannot write: {server.url}: 502: scripted error 502 (tried 3 times)"
    )


@pytest.mark.parametrize("kind", ["hang", "drip"])
def test_an_answer_that_does_not_end_meets_the_deadline(bench, run, stream, kind):
    async def scenario():
        slow = Behaviour(kind=kind, delay_s=0.02, texts=["x" * 10_000])
        async with bench(slow, stream=stream, deadline_s=0.1) as it:
            with pytest.raises(ProgrammerUnavailable, match=r"no answer within 0.1 s \(tried once"):
                await it.write()

    run(scenario())


def test_what_was_answered_beside_a_failure_is_kept(bench, run):
    def script(asked):
        failing = {1: 503, 2: 400}
        if asked.number in failing:
            return Behaviour(kind="status", status=failing[asked.number])
        return Behaviour()

    async def scenario():
        async with bench(script=script, completions="apart", max_retries=0) as it:
            return await it.write(3)

    answer = run(scenario())
    assert len(answer.candidates) == 1
    faults = sorted(completion.fault for completion in answer.completions)
    assert faults == [
        "",
        "not answered: 400: scripted error 400",
        "not answered: 503: scripted error 503 (tried once)",
    ]
