"""A pool of one real vLLM server on the CPU: what it answers, and what follows when it is killed.

One server for all of it: a start takes half a minute, and three gigabytes while it lasts.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from kopt.actors.cluster import open_cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.programmers.openai.reply import Reply
from kopt.actors.programmers.openai.structured import structured_fields
from kopt.actors.programmers.openai.tool_calls import ToolCall
from kopt.actors.programmers.openai.transport import exchange
from kopt.actors.programmers.registry import Workplace
from kopt.actors.programmers.vllm import VllmProgrammer
from kopt.actors.programmers.vllm_config import PoolConfig, VllmConfig
from kopt.actors.quiet import Quiet
from kopt.expansion import first_expansion
from kopt.ports import Target, WriteRequest
from kopt.problem import Problem

pytestmark = [pytest.mark.vllm, pytest.mark.ray, pytest.mark.slow]

PROBLEM = Problem(
    name="set/doubled",
    source="import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
    "    def forward(self, x):\n        return torch.relu(x) * 2\n\n\n"
    "def get_inputs():\n    return [torch.rand(8)]\n",
)
NUM_WRITES = 4
SEEDS = 10
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"what": {"type": "string", "enum": ["roofline", "stalls"]}},
            "required": ["what"],
            "additionalProperties": False,
        },
    },
}


def write_request(ordinal: int) -> WriteRequest:
    return WriteRequest(
        problem=PROBLEM,
        target=Target(device="cpu", name="test", arch="x86_64", languages=("torch", "cpp")),
        search="set/doubled/arm/0",
        arm="arm",
        seed=0,
        expansion=first_expansion(num_candidates=2, ordinal=ordinal, seed=ordinal),
        parent=None,
    )


async def raw(programmer: VllmProgrammer, **fields: object) -> Reply:
    """Ask the pool's server past the prompts."""
    async with programmer._pool.lend("raw") as seat:
        assert seat.client is not None
        body = {
            "model": programmer._model,
            "messages": [{"role": "user", "content": "Write a kernel."}],
            "max_tokens": 200,
            "seed": 1,
            **fields,
        }
        outcome = await exchange(seat.client, body, max_answer_bytes=100_000)
    assert isinstance(outcome, Reply), outcome
    return outcome


async def calls_of_noise(programmer: VllmProgrammer) -> tuple[ToolCall, ...]:
    """Return the tool calls of the first answer that holds any.

    A grammar lets any number of spaces and of calls follow, and a model whose weights are drawn may
    not come to an end of either: such an answer is cut, and holds none.
    """
    for seed in range(SEEDS):
        form = {"tools": [TOOL], "tool_choice": "required", "max_tokens": 400, "seed": seed}
        called = await raw(programmer, **form)
        if called.choices[0].calls:
            return called.choices[0].calls
    pytest.fail(f"no tool call in {SEEDS} answers; the last: {called.choices[0]}")


def test_a_real_server_writes_in_forms_calls_tools_is_killed_and_is_replaced(
    vllm_python: Path, tiny_model: Path, tmp_path: Path
) -> None:
    kept: list[object] = []
    said: list[str] = []
    config = VllmConfig(
        model=str(tiny_model),
        max_tokens=24,
        truncation="off",
        logprobs=True,
        return_token_ids=True,
        deadline_s=600.0,
        vllm=PoolConfig(
            python=str(vllm_python),
            max_model_len=12_000,
            tool_call_parser="hermes",
            arguments=("--enforce-eager",),
        ),
    )

    async def scenario() -> None:
        workplace = Workplace(
            cluster=cluster,
            cluster_config=ClusterConfig(),
            evaluate=EvaluateConfig(),
            quiet=Quiet("cpu"),
            run_dir=tmp_path,
            arm="arm",
            warn=said.append,
            keep_figures=kept.append,
        )
        programmer = VllmProgrammer(config, workplace)
        try:
            await a_whole_life(programmer)
        finally:
            await programmer.close()

    with open_cluster(ClusterConfig(num_cpus=2), device="cpu") as cluster:
        asyncio.run(scenario())
    (figures,) = kept
    assert isinstance(figures, dict)
    assert figures["restarts"] == 1
    assert figures["replicas"][0]["first_token_s"] > 0
    assert figures["prefix_hit_rate"] > 0.3, "consecutive prompts of a search share their start"
    assert any("prefix cache hit rate" in line for line in said), said


async def a_whole_life(programmer: VllmProgrammer) -> None:
    answer = await programmer.write(write_request(0))
    assert len(answer.completions) == 2
    assert answer.candidates == (), "noise holds no code"
    for completion in answer.completions:
        trace = completion.trace
        assert trace is not None
        assert len(trace.token_ids) == len(trace.logprobs) > 0
        assert all(value is not None and value < 0 for value in trace.logprobs)
        assert len(trace.prompt_token_ids) == answer.completions[0].usage.tokens_in
    again = await programmer.write(write_request(0))
    texts = [each.text for each in answer.completions]
    assert [each.text for each in again.completions] == texts, "equal seeds, equal texts"

    shaped = await raw(
        programmer,
        response_format={
            "type": "json_schema",
            "json_schema": {
                "name": "tile",
                "strict": True,
                "schema": {
                    "type": "object",
                    "properties": {"block": {"type": "integer", "enum": [64, 128]}},
                    "required": ["block"],
                    "additionalProperties": False,
                },
            },
        },
    )
    assert json.loads(shaped.choices[0].text)["block"] in (64, 128)
    form = structured_fields("json_schema", languages=("cpp", "torch"))
    answered = await raw(programmer, **form)
    assert answered.choices[0].text.startswith('{"strategy"')
    calls = await calls_of_noise(programmer)
    assert calls[0].name == "look"
    assert json.loads(calls[0].arguments)["what"] in ("roofline", "stalls")

    seat = programmer._pool.seats[0]
    assert seat.up is not None
    first_pid = seat.up.pid
    writes = [
        asyncio.ensure_future(programmer.write(write_request(ordinal)))
        for ordinal in range(1, NUM_WRITES + 1)
    ]
    while seat.load == 0:
        await asyncio.sleep(0.01)
    os.kill(first_pid, signal.SIGKILL)
    answers = await asyncio.gather(*writes)
    assert [len(each.completions) for each in answers] == [2] * NUM_WRITES
    assert seat.starts == 2
