"""The programmer under the real driver: journals go on without asking again, nothing is left."""

import asyncio
import json

import pytest

from kopt.data.fold import fold
from kopt.data.journal import read_events
from kopt.driver.loop import Pace
from kopt.driver.replay import replay
from kopt.search.config import BestOfNConfig
from kopt.testing.fakes import InstantEvaluator
from kopt.testing.openai_server import Behaviour, Mixture, refusing
from kopt.testing.small_fleet import drive_in_folder, small_tasks

pytestmark = pytest.mark.filterwarnings(
    "error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning"
)
CONFIG = BestOfNConfig(iterations=6, candidates=2)
KEY = "sk-secret-0123456789"


async def search(it, folder, *, config=CONFIG, in_flight=4):
    """Run a search in a folder, going on with what is there; return how many failed."""
    earlier = fold(read_events(folder)) if (folder / "journal").is_dir() else None
    return await drive_in_folder(
        folder,
        small_tasks(config, earlier=earlier),
        programmer=it.programmer,
        evaluator=InstantEvaluator(),
        pace=Pace(max_in_flight=in_flight),
    )


def made(folder) -> list[tuple[int, int, str]]:
    return sorted(
        (record.body.expansion, record.body.index, record.body.candidate)
        for record in read_events(folder)
        if record.body.kind == "candidate_made"
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_errors_on_the_way_do_not_change_what_a_search_tries(bench, run, tmp_path, stream):
    async def scenario(name: str, errors: float):
        folder = tmp_path / name
        folder.mkdir()
        script = Mixture(errors=errors)
        async with bench(script=script, stream=stream, max_retries=20, server={"seed": 3}) as it:
            assert await search(it, folder) == 0
            return made(folder), sum(each.attempt > 0 for each in it.server.served)

    smooth, retried_smooth = run(scenario("smooth", 0.0))
    rough, retried_rough = run(scenario("rough", 0.4))
    assert retried_smooth == 0
    assert retried_rough > 0
    assert [place[:2] for place in smooth] == [place[:2] for place in rough]
    assert len(smooth) == CONFIG.budget


def test_the_same_search_journals_the_same_candidates(bench, run, tmp_path):
    async def scenario(name: str):
        folder = tmp_path / name
        folder.mkdir()
        async with bench(script=Mixture(errors=0.3), max_retries=20, server={"seed": 1}) as it:
            await search(it, folder)
        return made(folder)

    assert run(scenario("a")) == run(scenario("b"))


def test_a_journalled_answer_is_never_asked_for_again(bench, run, tmp_path):
    """The driver is stopped between an answer and its verdicts, as a kill would."""

    async def begun():
        async with bench() as it:
            running = asyncio.create_task(search(it, tmp_path, in_flight=1))
            while len(it.server.served) < 3:
                await asyncio.sleep(0.001)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def resumed():
        async with bench() as it:
            assert await search(it, tmp_path) == 0
            return len(it.server.bodies)

    run(begun())
    answered = {
        record.body.expansion
        for record in read_events(tmp_path)
        if record.body.kind == "answer_received"
    }
    assert answered
    assert run(resumed()) == CONFIG.iterations - len(answered)
    state = fold(read_events(tmp_path))
    assert len(made(tmp_path)) == CONFIG.budget
    assert replay(state)


def test_a_cancelled_search_leaves_no_request_behind(bench, run, tmp_path):
    async def scenario():
        async with bench(Behaviour(kind="hang"), Behaviour(kind="hang")) as it:
            running = asyncio.create_task(search(it, tmp_path))
            while len(it.server.bodies) < 4:
                await asyncio.sleep(0.001)
            running.cancel()
            (outcome,) = await asyncio.gather(running, return_exceptions=True)
            assert isinstance(outcome, asyncio.CancelledError)

    run(scenario())


def test_a_refusal_ends_the_search_with_its_reason(bench, run, tmp_path):
    async def scenario():
        async with bench(model="gpt-0") as it:
            assert await search(it, tmp_path) == 1

    run(scenario())
    (found,) = fold(read_events(tmp_path)).searches.values()
    assert found.ended.failed
    assert "has no such model" in found.ended.reason
    assert "\n" not in found.ended.reason


def test_answers_without_candidates_end_the_search_with_their_reason(bench, run, tmp_path):
    async def scenario():
        async with bench(Behaviour(kind="refusal")) as it:
            assert await search(it, tmp_path, in_flight=1) == 1

    run(scenario())
    (found,) = fold(read_events(tmp_path)).searches.values()
    assert "2 of 2 answers held no candidate: the model refused" in found.ended.reason


def test_a_prompt_that_does_not_fit_ends_the_search_without_failing_it(bench, run, tmp_path):
    async def scenario():
        async with bench(server={"context_tokens": 50}) as it:
            assert await search(it, tmp_path) == 0

    run(scenario())
    (found,) = fold(read_events(tmp_path)).searches.values()
    assert found.ended.reason.startswith("exhausted: the prompt does not fit the model's context")


def test_what_was_paid_is_in_the_journal_and_the_key_is_nowhere(bench, run, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)

    async def scenario():
        price = {"prompt_usd_per_mtok": 1.0, "completion_usd_per_mtok": 2.0}
        async with bench(server={"key": KEY}, api_key_env="MY_KEY", price=price) as it:
            assert await search(it, tmp_path) == 0
            return it.server.bodies

    bodies = run(scenario())
    events = [record.body for record in read_events(tmp_path)]
    answers = [event for event in events if event.kind == "answer_received"]
    prompts = [event for event in events if event.kind == "prompt_sent"]
    assert len(answers) == CONFIG.budget
    assert sum(answer.cost_usd for answer in answers) > 0
    assert {prompt.sampling["seed"] for prompt in prompts} == {body["seed"] for body in bodies}
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes()
    assert KEY not in json.dumps([prompt.sampling for prompt in prompts])


def test_a_search_goes_on_where_the_form_is_refused_and_answers_are_cut(bench, run, tmp_path):
    refusing_forms = refusing("response_format")

    def script(asked):
        behaviour = refusing_forms(asked)
        if behaviour.kind == "answer" and asked.body["max_tokens"] == 4_000 and asked.number % 3:
            return Behaviour(kind="cut")
        return behaviour

    async def scenario():
        settings = {"structured": "json_schema", "max_tokens": 4_000, "completions": "apart"}
        async with bench(script=script, **settings) as it:
            failed = await search(it, tmp_path)
        return failed, it.said

    failed, said = run(scenario())
    assert failed == 0
    assert len(made(tmp_path)) == CONFIG.budget, "every slot has its candidate in the end"
    assert any("it is asked without from here on" in line for line in said)
    assert any(line.endswith("were whole then") for line in said)
    (state,) = fold(read_events(tmp_path)).searches.values()
    answers = [answer for each in state.expansions.values() for answer in each.answers.values()]
    cut = [answer for answer in answers if "cut off at the token limit" in answer.fault]
    assert cut
    assert len(answers) == CONFIG.budget + len(cut)
    sampled = [each.prompt.sampling for each in state.expansions.values() if each.prompt]
    assert any("asked_again" in sampling for sampling in sampled)
