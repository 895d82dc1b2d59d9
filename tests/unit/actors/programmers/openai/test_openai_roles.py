"""Calls of roles over HTTP: one completion each, what it cost, and who speaks among several."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from kopt.actors.programmers.ensemble import EnsembleProgrammer
from kopt.actors.programmers.ensemble_config import EnsembleConfig
from kopt.agent_call import AgentCall, CallPlace, Talker
from kopt.errors import ProgrammerRefused, ProgrammerUnavailable
from kopt.ports import Message
from kopt.testing.openai_server import Behaviour, ScriptedServer
from kopt.testing.small_fleet import small_problem
from kopt.testing.small_workplace import small_workplace

Run = Callable[[Any], Any]


def call(*, slot: int = 0, turn: int = 0, draw: int = 5) -> AgentCall:
    return AgentCall(
        place=CallPlace(3, "planner", slot, turn),
        problem=small_problem(),
        search="set/one/arm/0",
        seed=0,
        draw=draw,
        messages=(Message("system", "plan"), Message("user", "now")),
    )


def test_a_call_is_one_completion_with_its_cost(run: Run, bench: Callable[..., Any]) -> None:
    async def scenario() -> None:
        prices = {"prompt_usd_per_mtok": 1.0, "completion_usd_per_mtok": 10.0}
        async with bench(Behaviour(texts=["a plan"]), model="scripted", price=prices) as it:
            assert isinstance(it.programmer, Talker)
            reply = await it.programmer.say(call())
            said = reply.completion
            assert (said.text, said.fault) == ("a plan", "")
            assert said.usage.tokens_in > 0
            assert said.usage.cost_usd == pytest.approx(
                (said.usage.tokens_in + 10 * said.usage.tokens_out) / 1e6
            )
            (body,) = it.server.bodies
            assert [each["content"] for each in body["messages"]] == ["plan", "now"]
            assert reply.sampling["model"] == "scripted"

    run(scenario())


def test_each_place_has_a_sampling_seed_of_its_own(run: Run, bench: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with bench(model="scripted") as it:
            for each in (call(), call(slot=1), call(turn=1), call(draw=6), call()):
                await it.programmer.say(each)
            seeds = [body["seed"] for body in it.server.bodies]
            assert len(set(seeds)) == 4
            assert seeds[0] == seeds[4]

    run(scenario())


def test_words_that_do_not_come_are_a_fault_or_an_error(
    run: Run, bench: Callable[..., Any]
) -> None:
    async def scenario() -> None:
        async with bench(Behaviour(kind="null_content"), model="scripted") as it:
            assert (await it.programmer.say(call())).completion.fault
        async with bench(Behaviour(kind="status", status=503), model="scripted") as it:
            with pytest.raises(ProgrammerUnavailable):
                await it.programmer.say(call())
        async with bench(Behaviour(kind="status", status=401), model="scripted") as it:
            with pytest.raises(ProgrammerRefused):
                await it.programmer.say(call())

    run(scenario())


def test_one_member_speaks_for_an_expansion_and_another_stands_in(run: Run) -> None:
    async def scenario() -> None:
        said: list[str] = []
        async with AsyncExitStack() as stack:
            servers = [
                await stack.enter_async_context(ScriptedServer(models=(name,))) for name in "ab"
            ]
            members = [
                {"programmer": {"kind": "openai", "model": name, "base_url": server.url}}
                for name, server in zip("ab", servers, strict=True)
            ]
            config = EnsembleConfig.model_validate({"members": members})
            programmer = EnsembleProgrammer(config, small_workplace(Path(), warn=said.append))
            stack.push_async_callback(programmer.close)
            speakers = []
            for draw in range(8):
                replies = [await programmer.say(call(slot=slot, draw=draw)) for slot in range(3)]
                speakers.append({reply.sampling["model"] for reply in replies})
            assert all(len(each) == 1 for each in speakers)
            assert set().union(*speakers) == {"a", "b"}

    run(scenario())
