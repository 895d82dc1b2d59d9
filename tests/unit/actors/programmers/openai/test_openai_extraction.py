"""Lessons for a search's memory from a scripted server: read, accounted for, never in the way."""

from __future__ import annotations

import asyncio
import json

import pytest

from kopt.actors.programmers.openai.extraction import places_for_lessons
from kopt.data.fold import fold
from kopt.data.journal import read_events
from kopt.driver.loop import Pace
from kopt.driver.memories import Remembering
from kopt.driver.replay import replay
from kopt.errors import ProgrammerRefused
from kopt.memory.entry import entry_of
from kopt.memory.iteration import Iteration
from kopt.memory.rule import MemoryRule
from kopt.ports import ExtractionRequest, Extractor
from kopt.search.config import BestOfNConfig
from kopt.testing.fakes import InstantEvaluator
from kopt.testing.openai_server import Behaviour
from kopt.testing.small_fleet import drive_in_folder, small_tasks

GIVEN = {"learnings": ["rows are short: a warp each"], "key_files": []}


def extraction_request(made) -> ExtractionRequest:
    return ExtractionRequest(
        problem=made.problem,
        target=made.target,
        iteration=Iteration(expansion=4, mode="initial", tried=(), faults=("no code block",)),
        parent=None,
        written=(),
        known=(),
        seed=3,
    )


def test_lessons_are_read_and_their_cost_counted(bench, run, request_of) -> None:
    async def scenario():
        price = {"prompt_usd_per_mtok": 1.0}
        async with bench(Behaviour(texts=[json.dumps(GIVEN)]), price=price) as made:
            assert isinstance(made.programmer, Extractor)
            answer = await made.programmer.extract(extraction_request(request_of(1)))
            return answer, made.server.bodies

    answer, (body,) = run(scenario())
    assert answer.entries == (entry_of("learnings", "rows are short: a warp each"),)
    assert answer.completion.usage.tokens_in > 0
    assert answer.completion.usage.cost_usd > 0
    assert "- no code block" in body["messages"][1]["content"]
    assert "tools" not in body
    assert [each.text for each in answer.messages] == [m["content"] for m in body["messages"]]
    assert answer.sampling["seed"] == body["seed"]


def test_words_without_lessons_are_a_fault_and_are_kept(bench, run, request_of) -> None:
    async def scenario():
        async with bench(Behaviour(texts=["Nothing new."])) as made:
            return await made.programmer.extract(extraction_request(request_of(1)))

    answer = run(scenario())
    assert answer.entries is None
    assert "no JSON object" in answer.completion.fault
    assert answer.completion.text == "Nothing new."


def test_an_extractor_whose_key_is_wrong_says_so(bench, run, request_of) -> None:
    async def scenario():
        async with bench(server={"key": "right"}) as made:
            await made.programmer.extract(extraction_request(request_of(1)))

    with pytest.raises(ProgrammerRefused):
        run(scenario())


def test_half_the_turns_stay_with_those_who_write(bench, run, request_of) -> None:
    assert [places_for_lessons(most) for most in (1, 2, 5, 64)] == [1, 1, 2, 32]

    async def scenario():
        lessons = Behaviour(texts=[json.dumps(GIVEN)], delay_s=0.2)

        def script(asked):
            system = asked.body["messages"][0]["content"]
            return lessons if "notebook" in system else Behaviour()

        async with bench(script=script, max_concurrency=2) as made:
            learning = [
                asyncio.create_task(made.programmer.extract(extraction_request(request_of(1))))
                for _ in range(4)
            ]
            await asyncio.sleep(0)
            answer = await made.write()
            under_way = sum(not each.done() for each in learning)
            await asyncio.gather(*learning)
            return answer, under_way

    answer, under_way = run(scenario())
    assert len(answer.candidates) == 1
    assert under_way >= 3


CONFIG = BestOfNConfig(iterations=6, candidates=2)


def is_for_the_notebook(asked) -> bool:
    return "notebook" in asked.body["messages"][0]["content"]


async def search(it, folder, *, deterministic: bool = False) -> int:
    """Run a search whose memory the same model keeps, going on with what the folder has."""
    earlier = fold(read_events(folder)) if (folder / "journal").is_dir() else None
    return await drive_in_folder(
        folder,
        small_tasks(CONFIG, earlier=earlier),
        programmer=it.programmer,
        evaluator=InstantEvaluator(),
        pace=Pace(max_in_flight=2, deterministic=deterministic),
        remembering=Remembering(rule=MemoryRule(search=True), extractor=it.programmer),
    )


def test_what_the_model_learned_stands_in_its_next_prompts(bench, run, tmp_path) -> None:
    def script(asked):
        if not is_for_the_notebook(asked):
            return Behaviour()
        said = json.dumps({"learnings": [f"a lesson, number {len(lessons)}"]})
        lessons.append(said)
        return Behaviour(texts=[said])

    lessons = list[str]()

    async def scenario():
        async with bench(script=script) as it:
            assert await search(it, tmp_path, deterministic=True) == 0
            return [b for b in it.server.bodies if "notebook" not in b["messages"][0]["content"]]

    bodies = run(scenario())
    assert len(bodies) == CONFIG.iterations
    assert len(lessons) == CONFIG.iterations - 1  # nobody reads what is learned from the last
    for number, body in enumerate(bodies):
        text = body["messages"][1]["content"]
        assert ("## What is known by now" in text) == (number > 0)
        assert text.count("- a lesson, number ") == number
    state = fold(read_events(tmp_path))
    (journalled,) = state.searches.values()
    origins = [update.origin for update in journalled.memory]
    assert origins == ["model"] * len(lessons) + ["rules"]
    assert all(update.tokens_in > 0 for update in journalled.memory[:-1])
    assert replay(state)


def test_a_model_that_hangs_over_the_notebook_delays_nothing_and_leaves_nothing(
    bench, run, tmp_path
) -> None:
    def script(asked):
        return Behaviour(kind="hang") if is_for_the_notebook(asked) else Behaviour()

    async def scenario():
        async with bench(script=script) as it:
            return await asyncio.wait_for(search(it, tmp_path), timeout=15)

    assert run(scenario()) == 0
    (journalled,) = fold(read_events(tmp_path)).searches.values()
    assert len(journalled.memory) == CONFIG.iterations
    assert {update.origin for update in journalled.memory} == {"rules"}


def test_a_search_stopped_while_the_model_writes_its_notebook_asks_again(
    bench, run, tmp_path
) -> None:
    async def begun():
        def script(asked):
            return Behaviour(kind="hang") if is_for_the_notebook(asked) else Behaviour()

        async with bench(script=script) as it:
            running = asyncio.create_task(search(it, tmp_path, deterministic=True))
            while not any("notebook" in b["messages"][0]["content"] for b in it.server.bodies):
                await asyncio.sleep(0.001)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def resumed():
        said = Behaviour(texts=[json.dumps({"learnings": ["short rows"]})])
        async with bench(
            script=lambda asked: said if is_for_the_notebook(asked) else Behaviour()
        ) as it:
            assert await search(it, tmp_path, deterministic=True) == 0
            return ["notebook" in b["messages"][0]["content"] for b in it.server.bodies]

    run(begun())
    (journalled,) = fold(read_events(tmp_path)).searches.values()
    assert journalled.memory == []
    assert not journalled.open_expansions()
    asked = run(resumed())
    assert asked[0]  # the lessons of the expansion that was over
    assert asked.count(False) == CONFIG.iterations - 1
    (journalled,) = fold(read_events(tmp_path)).searches.values()
    assert [update.expansion for update in journalled.memory] == list(range(CONFIG.iterations))
