"""An endpoint that will not answer as things are set up: one line that says what to do."""

import logging

import pytest

from kopt.errors import ProgrammerRefused, ProgrammerUnavailable
from kopt.testing.openai_server import Behaviour

pytestmark = pytest.mark.filterwarnings(
    "error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning"
)
KEY = "sk-secret-0123456789"


def refused(bench, run, *behaviours, **options):
    """Return the line of a refusal, and the server."""

    async def scenario():
        async with bench(*behaviours, **options) as it:
            with pytest.raises(ProgrammerRefused) as caught:
                await it.write()
            return str(caught.value).removeprefix("programmer openai cannot write: "), it.server

    line, server = run(scenario())
    assert "\n" not in line
    return line, server


def test_a_wrong_key_names_the_variable_and_never_the_key(bench, run, monkeypatch, caplog):
    monkeypatch.setenv("MY_KEY", KEY)
    with caplog.at_level(logging.DEBUG):
        line, server = refused(
            bench, run, server={"key": "another"}, api_key_env="MY_KEY", model="scripted"
        )
    assert line == f"{server.url} does not take the key in MY_KEY (401)"
    assert KEY not in caplog.text


def test_a_missing_key_says_which_variable_to_set(bench, run, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    line, server = refused(bench, run, server={"key": "one"})
    assert line == f"{server.url} asks for a key (401): set OPENAI_API_KEY"


def test_the_right_key_is_sent(bench, run, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)

    async def scenario():
        async with bench(server={"key": KEY}, api_key_env="MY_KEY") as it:
            return await it.write()

    answer = run(scenario())
    assert len(answer.candidates) == 1
    assert KEY not in repr(answer)


def test_a_server_that_repeats_the_key_is_not_quoted(bench, run, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    echo = Behaviour(kind="status", status=403, error={"message": f"key {KEY} is not allowed"})
    line, _ = refused(bench, run, echo, api_key_env="MY_KEY")
    assert KEY not in line
    assert "key [secret] is not allowed" in line


def test_an_unknown_model_is_named_with_those_that_there_are(bench, run):
    line, server = refused(bench, run, model="gpt-0", server={"models": ("a", "b")})
    assert line.startswith(f"{server.url} has no such model (404: The model `gpt-0` does not exist")
    assert line.endswith("; it lists a, b")


def test_the_only_model_need_not_be_named(bench, run):
    async def scenario():
        async with bench(server={"models": ("the-one",)}) as it:
            return [await it.write(seed=seed) for seed in range(2)]

    assert [answer.sampling["model"] for answer in run(scenario())] == ["the-one"] * 2


def test_several_models_ask_for_a_choice(bench, run):
    models = tuple(f"m{number}" for number in range(12))
    line, server = refused(bench, run, server={"models": models})
    shown = ", ".join(models[:8])
    assert line == f"{server.url} lists {shown} and 4 more: set programmer.model"


def test_no_model_at_all_asks_for_its_name(bench, run):
    line, server = refused(bench, run, server={"models": ()})
    assert line == f"{server.url} lists no models: set programmer.model"


def test_a_used_up_quota_is_not_asked_again(bench, run):
    quota = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
    behaviour = Behaviour(kind="status", status=429, error=quota)
    line, server = refused(bench, run, behaviour)
    assert line == f"{server.url} refuses the request (429: You exceeded your current quota)"
    assert len(server.served) == 1


def test_a_request_that_is_refused_repeats_the_servers_words_in_one_line(bench, run):
    error = {"message": "no\nsuch\nthing " * 100, "param": None}
    line, _ = refused(bench, run, Behaviour(kind="status", status=400, error=error))
    assert "400: no such thing no such thing" in line
    assert len(line) < 400


def test_a_wrong_path_points_at_the_base_url(bench, run):
    async def scenario():
        async with bench() as it:
            wrong = it.server.url.replace("/v1", "/v2")
            async with bench(base_url=wrong, model="scripted") as other:
                with pytest.raises(ProgrammerRefused, match="expected a base URL"):
                    await other.write()

    run(scenario())


@pytest.mark.parametrize("completions", ["together", "apart"])
def test_a_prompt_that_does_not_fit_closes_its_node(bench, run, completions):
    async def scenario():
        async with bench(server={"context_tokens": 100}, completions=completions) as it:
            return await it.write(2), it.server

    answer, server = run(scenario())
    assert answer.exhausted
    assert answer.candidates == ()
    assert answer.messages
    assert answer.note.startswith(
        "the prompt does not fit the model's context (400: This model's maximum context length is "
        "100 tokens. However, your messages resulted in "
    )
    assert len(server.served) == (1 if completions == "together" else 2)


def test_an_endpoint_that_is_not_there_is_one_line(bench, run):
    async def scenario():
        async with bench() as it:
            gone = it.server.url
        async with bench(base_url=gone, model="m", max_retries=1) as it:
            with pytest.raises(ProgrammerUnavailable) as caught:
                await it.write()
            assert not isinstance(caught.value, ProgrammerRefused)
            return str(caught.value), gone

    line, gone = run(scenario())
    assert line.startswith(f"programmer openai cannot write: {gone}: connection lost (")
    assert line.endswith("(tried 2 times)")
    assert "\n" not in line


def test_a_page_that_repeats_the_key_is_kept_without_it(bench, run, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    echo = Behaviour(texts=[f"Authorization: Bearer {KEY}"])

    async def scenario():
        async with bench(echo, api_key_env="MY_KEY") as it:
            return await it.write()

    answer = run(scenario())
    assert answer.completions[0].text == "Authorization: Bearer [secret]"
    assert KEY not in repr(answer)
