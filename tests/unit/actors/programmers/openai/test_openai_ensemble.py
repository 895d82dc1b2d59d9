"""Several models write for one search: each its share, and one that is down is stood in for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import ValidationError

from kopt.actors.programmers.ensemble import EnsembleProgrammer, drawn
from kopt.actors.programmers.ensemble_config import EnsembleConfig
from kopt.errors import ProgrammerRefused, ProgrammerUnavailable
from kopt.testing.openai_server import Behaviour, ScriptedServer, in_turn
from kopt.testing.small_workplace import small_workplace

QUICK = {"backoff_s": 0.001, "max_retries": 1, "deadline_s": 20.0}
DOWN = Behaviour(kind="status", status=503)
WRONG_KEY = Behaviour(kind="status", status=401)


@dataclass
class Ensemble:
    """Servers named a, b, … and the programmer that asks them."""

    programmer: EnsembleProgrammer
    servers: list[ScriptedServer]
    said: list[str]

    def asked(self) -> list[int]:
        return [len(server.bodies) for server in self.servers]


@asynccontextmanager
async def ensemble(*members: tuple[float, Behaviour]) -> AsyncIterator[Ensemble]:
    said: list[str] = []
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(ScriptedServer(in_turn(behaviour), models=(name,)))
            for name, (_, behaviour) in zip("abc", members, strict=False)
        ]
        config = EnsembleConfig.model_validate(
            {
                "members": [
                    {
                        "weight": weight,
                        "programmer": {
                            "kind": "openai",
                            "model": name,
                            "base_url": server.url,
                            **QUICK,
                        },
                    }
                    for name, (weight, _), server in zip("abc", members, servers, strict=False)
                ]
            }
        )
        programmer = EnsembleProgrammer(config, small_workplace(Path(), warn=said.append))
        try:
            yield Ensemble(programmer, servers, said)
        finally:
            await programmer.close()


def test_shares_are_those_of_the_weights_and_depend_on_the_seed_alone() -> None:
    first = [drawn([3.0, 1.0, 0.5], seed=seed)[0] for seed in range(9_000)]
    # Of 9,000 draws 6,000, 2,000 and 1,000 are expected; four standard deviations are 179 at most.
    for number, expected in enumerate([6_000, 2_000, 1_000]):
        assert abs(first.count(number) - expected) < 180
    assert drawn([3.0, 1.0, 0.5], seed=5) == drawn([3.0, 1.0, 0.5], seed=5)
    assert sorted(drawn([1.0] * 5, seed=1)) == [0, 1, 2, 3, 4]


def test_each_expansion_is_written_by_the_model_that_is_drawn(run, request_of) -> None:
    async def scenario():
        async with ensemble((3.0, Behaviour()), (1.0, Behaviour())) as it:
            models = [
                (await it.programmer.write(request_of(2, seed=seed))).sampling["model"]
                for seed in range(12)
            ]
            return models, it.asked(), it

    models, asked, it = run(scenario())
    assert models == ["ab"[drawn([3.0, 1.0], seed=seed)[0]] for seed in range(12)]
    assert asked == [models.count("a"), models.count("b")]
    assert it.said == [
        f"programmer ensemble: answered by member 0 (a) {asked[0]}, 1 (b) {asked[1]}"
    ]


def test_a_model_that_is_down_is_stood_in_for(run, request_of) -> None:
    async def scenario():
        async with ensemble((3.0, DOWN), (1.0, Behaviour())) as it:
            answers = [await it.programmer.write(request_of(1, seed=seed)) for seed in range(6)]
            return [answer.sampling["model"] for answer in answers], it

    models, it = run(scenario())
    assert set(models) == {"b"}
    failed = sum(drawn([3.0, 1.0], seed=seed)[0] == 0 for seed in range(6))
    assert it.said[-1].endswith(f"0 (a) 0 ({failed} failed), 1 (b) 6")


def test_a_model_that_will_never_write_is_asked_no_more(run, request_of) -> None:
    async def scenario():
        async with ensemble((100.0, WRONG_KEY), (1.0, Behaviour())) as it:
            for seed in range(5):
                await it.programmer.write(request_of(1, seed=seed))
            return it.asked(), it

    asked, it = run(scenario())
    assert asked == [1, 5]
    assert "member 0 (a) is out: " in it.said[0]


@pytest.mark.parametrize(
    ("second", "error"), [(DOWN, ProgrammerUnavailable), (WRONG_KEY, ProgrammerRefused)]
)
def test_where_nobody_can_write_one_error_says_so(run, request_of, second, error) -> None:
    async def scenario():
        async with ensemble((1.0, WRONG_KEY), (1.0, second)) as it:
            with pytest.raises(error) as raised:
                await it.programmer.write(request_of(1))
            return raised.value

    assert type(run(scenario())) is error


def test_the_section_sums_its_members_up_and_says_what_it_does_not_take() -> None:
    model = {"kind": "openai", "model": "a", "max_concurrency": 5}
    config = EnsembleConfig.model_validate(
        {"members": [{"programmer": model}, {"weight": 2, "programmer": {"kind": "vllm"}}]}
    )
    assert config.lead == 1
    assert config.expansions_at_once == 5 + 64
    assert config.reserved_gpus("cuda") == 1
    with pytest.raises(ValidationError, match="at least 2 items"):
        EnsembleConfig.model_validate({"members": [{"programmer": model}]})
    seeded = {"programmer": {**model, "seeds": "rewriter"}}
    with pytest.raises(ValidationError, match=r"set programmer\.seeds"):
        EnsembleConfig.model_validate({"members": [seeded, {"programmer": model}]})
    with pytest.raises(ValidationError, match="mailbox"):
        EnsembleConfig.model_validate({"members": [{"programmer": {"kind": "mailbox"}}] * 2})
