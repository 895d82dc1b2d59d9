"""The scripted server: the same requests get the same answers, and its counts are true."""

import asyncio
import json
import random
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from kopt.testing.openai_server import Asked, Behaviour, Mixture, ScriptedServer
from kopt.testing.openai_server.authors import reference_author
from kopt.testing.openai_server.process import ServerProcess

PROMPT = (
    "# Task\n\n```python\nimport torch\n\n\nclass Model(torch.nn.Module):\n    pass\n```\n\n"
    "Answer like this:\n\n```python\nclass ModelNew: ...\n```\n"
)


def post(url: str, body: dict[str, object]) -> tuple[int, bytes]:
    request = Request(
        f"{url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urlopen(request, timeout=10) as response:
            return response.status, response.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()
    except (OSError, HTTPException):  # the connection was cut
        return 0, b""


def asked_for(number: int) -> dict[str, object]:
    messages = [{"role": "user", "content": f"{PROMPT}{number}"}]
    return {"model": "scripted", "messages": messages, "seed": number}


async def exchange(seed: int) -> tuple[list[tuple[int, bytes]], list[str]]:
    mixture = Mixture(errors=0.3, faulty=0.2)
    async with ScriptedServer(mixture, seed=seed) as server:
        got = [
            await asyncio.to_thread(post, server.url, asked_for(number % 10))
            for number in range(30)
        ]
        return got, [each.kind for each in server.served]


def test_what_it_does_is_a_function_of_seed_request_and_attempt():
    first, again, other = (asyncio.run(exchange(seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert {"answer", "status"} <= set(first[1])


def test_a_request_that_met_an_error_does_not_meet_it_for_ever():
    async def scenario():
        async with ScriptedServer(Mixture(errors=0.5)) as server:
            statuses = set()
            for _ in range(12):
                status, _ = await asyncio.to_thread(post, server.url, asked_for(1))
                statuses.add(status)
            return statuses, [each.attempt for each in server.served]

    statuses, attempts = asyncio.run(scenario())
    assert 200 in statuses
    assert len(statuses) > 1
    assert attempts == list(range(12))


def test_a_choice_more_or_fewer_does_not_change_the_others():
    def texts(num_choices: int) -> list[str]:
        async def scenario():
            behaviour = Behaviour(num_choices=num_choices)
            async with ScriptedServer(lambda asked: behaviour) as server:
                _, data = await asyncio.to_thread(post, server.url, asked_for(1))
                return [each["message"]["content"] for each in json.loads(data)["choices"]]

        return asyncio.run(scenario())

    assert texts(3)[:1] == texts(1)


def test_the_reference_author_answers_with_the_prompts_reference():
    body = {"messages": [{"role": "user", "content": PROMPT}]}
    asked = Asked(body=body, number=0, attempt=0, rng=random.Random(0))
    text = reference_author(asked, 1)
    assert "class ModelNew(torch.nn.Module):\n    pass" in text
    assert text.count("```") == 2


def test_a_process_of_its_own_serves_and_counts():
    with ServerProcess(author="stock", model="m", delay_s=0.01) as server:
        body = {**asked_for(3), "model": "m"}
        status, data = post(server.url, body)
        wrong, _ = post(server.url, {**body, "model": "n"})
        served = server.served()
    assert (status, wrong) == (200, 404)
    assert "ModelNew" in json.loads(data)["choices"][0]["message"]["content"]
    assert [each.kind for each in served] == ["answer", "refused"]
    assert served[0].held_s >= 0.01
    assert served[0].seed == 3


def test_a_command_that_cannot_start_says_so():
    with pytest.raises(RuntimeError, match="did not start"), ServerProcess(author="nobody"):
        pass
