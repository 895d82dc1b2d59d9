"""A scripted server and the programmer that asks it, in one loop; nothing may be left behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kopt.actors.programmers.openai import OpenAIProgrammer
from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.expansion import first_expansion
from kopt.ports import Answer, Target, WriteRequest
from kopt.problem import Problem
from kopt.testing.openai_server import Behaviour, ScriptedServer, in_turn
from kopt.testing.openai_server.behaviour import Script
from kopt.testing.small_workplace import small_workplace

PROBLEM = Problem(
    name="set/doubled",
    source="import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
    "    def forward(self, x):\n        return torch.relu(x) * 2\n\n\n"
    "def get_inputs():\n    return [torch.rand(8)]\n",
)
QUICK = {"backoff_s": 0.001, "max_retries": 2, "deadline_s": 20.0}


def write_request(num_candidates: int = 1, *, seed: int = 7, ordinal: int = 0) -> WriteRequest:
    return WriteRequest(
        problem=PROBLEM,
        target=Target(device="cpu", name="test", arch="x86_64", languages=("torch", "cpp")),
        search="set/doubled/arm/0",
        arm="arm",
        seed=0,
        expansion=first_expansion(num_candidates=num_candidates, ordinal=ordinal, seed=seed),
        parent=None,
    )


@dataclass
class Bench:
    """A server and a programmer that asks it."""

    server: ScriptedServer
    programmer: OpenAIProgrammer
    said: list[str] = field(default_factory=list)

    async def write(self, num_candidates: int = 1, *, seed: int = 7) -> Answer:
        return await self.programmer.write(write_request(num_candidates, seed=seed))


@asynccontextmanager
async def open_bench(
    *behaviours: Behaviour,
    script: Script | None = None,
    server: dict[str, object] | None = None,
    **config: object,
) -> AsyncIterator[Bench]:
    said: list[str] = []
    chosen = script or in_turn(*(behaviours or (Behaviour(),)))
    async with ScriptedServer(chosen, **(server or {})) as scripted:  # type: ignore[arg-type]
        settings = {"base_url": scripted.url, **QUICK, **config}
        programmer = OpenAIProgrammer(
            OpenAIConfig(**settings),  # type: ignore[arg-type]
            small_workplace(Path(), warn=said.append),
        )
        try:
            yield Bench(scripted, programmer, said)
        finally:
            await programmer.close()


@pytest.fixture
def bench():
    return open_bench


@pytest.fixture
def request_of():
    return write_request


@pytest.fixture
def run() -> Callable[[object], object]:
    """Run a scenario to its end; tasks, sockets and generators it leaves behind fail the test."""

    def run_scenario(scenario):
        async def checked():
            result = await scenario
            for _ in range(10):  # generators of the client's close themselves
                await asyncio.sleep(0)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"tasks left behind: {left}"
            return result

        result = asyncio.run(checked())
        gc.collect()
        return result

    return run_scenario
