"""The service over HTTP: client, back-pressure, TRL's reward function."""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kopt.actors.serve.client import RewardClient
from kopt.actors.serve.config import ServeConfig
from kopt.actors.serve.rewards import trl_reward
from kopt.actors.serve.service import RewardService
from kopt.candidate import Candidate
from kopt.errors import ConfigError
from kopt.evaluation import Evaluation
from kopt.ports import Target
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.testing.fakes import InstantEvaluator, correct

uvicorn = pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

PROBLEM = Problem(name="set/a", source="class Model: ...\n")
TARGET = Target(device="cpu", name="a CPU", arch="x86_64", languages=("cpp", "torch"))


def completion(number: int) -> str:
    body = f"    number = {number}\n    def forward(self, x): return x"
    return f"```python\nimport torch\nclass ModelNew(torch.nn.Module):\n{body}\n```\n"


class Gate(InstantEvaluator):
    """Judges once it is open; waits in its own loop until then."""

    def __init__(self, *, is_open: bool = True) -> None:
        super().__init__(lambda problem, candidate: correct(2.0))
        self.open = threading.Event()
        if is_open:
            self.open.set()

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        await asyncio.to_thread(self.open.wait)
        return await super().evaluate(problem, candidate)


@contextmanager
def served(evaluator: InstantEvaluator, **bounds: int | float) -> Iterator[str]:
    """The URL of a service in a thread of its own."""
    from kopt.actors.serve.app import make_app

    config = ServeConfig.model_validate(bounds)
    service = RewardService(
        evaluator, target=TARGET, rule=RewardRule(), config=config, problems=[PROBLEM]
    )
    settings = uvicorn.Config(make_app(service, config=config), port=0, log_level="warning")
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not (server.started and server.servers):
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)


def test_a_batch_is_answered_in_order_and_health_counts_it() -> None:
    with served(Gate()) as url:
        client = RewardClient(url)
        items = [{"problem": "set/a", "completion": completion(n)} for n in (1, 2)]
        found = client.judge([*items, {"problem": "set/a", "completion": "none"}])
        assert [each["kind"] for each in found] == ["correct", "correct", "no_candidate"]
        assert found[0]["candidate"] != found[1]["candidate"]
        health = client.health()
        assert (health["judged"], health["served"], health["problems"]) == (2, 3, ["set/a"])


def test_back_pressure_is_429_with_a_time_and_the_client_waits_it_out() -> None:
    gate = Gate(is_open=False)
    with served(gate, max_waiting=1) as url:
        body = json.dumps(
            {"items": [{"problem": "set/a", "completion": completion(1)}], "wait_s": 0}
        ).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{url}/v1/judgements", data=body, headers=headers)
        with urllib.request.urlopen(request) as reply:
            assert json.load(reply)["items"][0]["status"] == "pending"
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            gate.open.set()
            time.sleep(0.05)

        client = RewardClient(url, sleep=pause)
        (found,) = client.judge([{"problem": "set/a", "completion": completion(2)}])
        assert found["status"] == "done"
        assert pauses
        assert all(each >= 1.0 for each in pauses)


@pytest.mark.parametrize(
    ("items", "code"),
    [([{"problem": "set/a"}], 422), ([{"completion": "x", "colour": 1}], 422), ("x", 422)],
)
def test_what_is_no_batch_is_refused(items: Any, code: int) -> None:
    with served(Gate()) as url, pytest.raises(ConfigError, match=f"answer {code}"):
        RewardClient(url)._post(items, left_s=0.0)


def test_nobody_there_is_one_line() -> None:
    client = RewardClient("http://127.0.0.1:9", sleep=lambda seconds: None)
    with pytest.raises(ConfigError, match="no reward service answers there"):
        client.judge([{"problem": "a", "completion": "b"}])


def test_a_reward_function_reads_the_columns_of_an_export() -> None:
    with served(Gate()) as url:
        function = trl_reward(RewardClient(url))
        rewards = function(
            completions=[[{"role": "assistant", "content": completion(1)}], "no code"],
            prompts=["a", "b"],
            problem=["set/a", PROBLEM.problem_id],
            trainer_state=None,
        )
        assert rewards == [pytest.approx(0.6931, abs=1e-4), -3.0]
        with pytest.raises(ConfigError, match="expected a column"):
            function(completions=["x"])
