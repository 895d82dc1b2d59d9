"""The pool with servers that are processes, and no cluster: the scripted server in vLLM's place."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kopt.actors.programmers.openai.endpoint import make_client
from kopt.actors.programmers.openai.reply import Reply
from kopt.actors.programmers.openai.transport import exchange
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.actors.programmers.openai_access import Access
from kopt.actors.programmers.vllm.figures import Figures
from kopt.actors.programmers.vllm.pool import Pool
from kopt.actors.programmers.vllm.replica import Down, Replica, Up
from kopt.actors.programmers.vllm_config import PoolConfig, VllmConfig
from kopt.actors.quiet import Quiet
from kopt.errors import WorkerLost
from kopt.testing.fake_vllm import FakeVllm


class LocalPost(Replica):
    """A replica in this process; `lose` makes as if its actor were gone."""

    is_lost = False

    def discard(self) -> None:
        self.is_lost = True


def connect(up: Up):
    access = Access(
        url=up.url, is_local=True, key_variable="", key=up.key, headers={}, secrets=(up.key,)
    )
    return make_client(access, connections=8)


@dataclass
class Bench:
    fake: FakeVllm
    pool: Pool
    said: list[str] = field(default_factory=list)

    async def ask(self, key: str = "search", seed: int = 0) -> Reply | Trouble:
        async with self.pool.lend(key) as seat:
            up, client = seat.up, seat.client
            assert client is not None
            body = {
                "model": "model",
                "messages": [{"role": "user", "content": "class Model: pass"}],
                "seed": seed,
            }
            outcome = await exchange(client, body, max_answer_bytes=10_000)
        if isinstance(outcome, Trouble):
            self.pool.suspect(seat, up)
        return outcome


@asynccontextmanager
async def open_pool(
    folder: Path, *, fake: dict[str, object] | None = None, **settings: object
) -> AsyncIterator[Bench]:
    made = FakeVllm(folder=folder / "env", author="stock", **(fake or {})).make()  # type: ignore[arg-type]
    quick = {"health_s": 0.1, "restart_backoff_s": 0.01, "start_s": 20.0, "drain_s": 2.0}
    config = VllmConfig(
        model=str(made.model),
        vllm=PoolConfig(python=str(made.python), **{**quick, **settings}),  # type: ignore[arg-type]
    )

    def hire(number: int) -> LocalPost:
        logs = str(folder / "logs")
        return LocalPost(config, number=number, host="127.0.0.1", device="cpu", log_dir=logs)

    said: list[str] = []
    pool = Pool(config.vllm, hire=hire, connect=connect, quiet=Quiet("cuda"), warn=said.append)
    try:
        yield Bench(made, pool, said)
    finally:
        await pool.close()


async def lost_reason(bench: Bench) -> str:
    with pytest.raises(WorkerLost) as caught:
        await bench.pool.ready()
    assert "\n" not in caught.value.why
    return caught.value.why


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_server_answers_with_its_key_and_is_gone_after_the_close(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_pool(tmp_path) as bench:
            assert isinstance(await bench.ask(), Reply)
            up = bench.pool.seats[0].up
            assert up is not None
            assert 0 < up.healthy_s < up.first_token_s < 20
            assert up.key not in repr(up)
        assert not is_running(up.pid)
        assert bench.pool.figures.prefix_queries > 0, "the last look is taken before the end"
        assert bench.said == []

    asyncio.run(scenario())


def test_a_killed_server_is_replaced_and_its_requests_are_answered_elsewhere(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with open_pool(tmp_path, fake={"delay_s": 30.0}) as bench:
            await bench.pool.ready()
            first = bench.pool.seats[0].up
            assert first is not None
            asked = asyncio.ensure_future(bench.ask())
            while bench.pool.seats[0].load == 0:
                await asyncio.sleep(0.01)
            replace(bench.fake, delay_s=0.0).make()  # for its successor
            os.kill(first.pid, signal.SIGKILL)
            outcome = await asked
            assert isinstance(outcome, Trouble)
            assert (outcome.kind, outcome.label) == ("retry", "connection")
            assert isinstance(await bench.ask(), Reply)
            seat = bench.pool.seats[0]
            assert seat.starts == 2
            assert seat.up is not None
            assert seat.up.pid != first.pid
        assert ["started again" in line for line in bench.said] == [True]
        assert bench.pool.to_json()["restarts"] == 1

    asyncio.run(scenario())


def test_searches_keep_to_a_server_each_and_a_retired_one_gets_no_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_pool(tmp_path, replicas=2) as bench:
            while not all(seat.up for seat in bench.pool.seats):
                await asyncio.sleep(0.02)
            for _ in range(3):
                await bench.ask("a")
                await bench.ask("b")
            assert [seat.sent for seat in bench.pool.seats] == [3, 3]
            await bench.pool.retire(bench.pool.seats[0])
            await bench.ask("a")
            await bench.ask("b")
            assert [seat.sent for seat in bench.pool.seats] == [3, 5]

    asyncio.run(scenario())


def test_a_retired_server_finishes_what_it_answers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_pool(tmp_path, fake={"delay_s": 0.6}, drain_s=10.0) as bench:
            await bench.pool.ready()
            asked = asyncio.ensure_future(bench.ask())
            while bench.pool.seats[0].load == 0:
                await asyncio.sleep(0.01)
            await bench.pool.retire(bench.pool.seats[0])
            assert isinstance(await asked, Reply)

    asyncio.run(scenario())


def test_a_server_that_never_was_up_is_given_up_at_once_in_its_own_words(tmp_path: Path) -> None:
    async def scenario() -> str:
        words = {"last_words": "ValueError: model type x is not known", "exit_code": 1}
        async with open_pool(tmp_path, fake=words) as bench:
            return await lost_reason(bench)

    why = asyncio.run(scenario())
    assert "server 0 ended with exit code 1: ValueError: model type x is not known" in why
    assert "logs/vllm-0.log" in why


def test_a_server_that_is_never_well_is_ended_at_its_deadline(tmp_path: Path) -> None:
    async def scenario() -> str:
        async with open_pool(tmp_path, fake={"unhealthy": True}, start_s=2.0) as bench:
            return await lost_reason(bench)

    why = asyncio.run(scenario())
    assert "expected an answer within programmer.vllm.start_s=2 s" in why


def test_a_port_that_is_taken_is_one_line_before_a_start(tmp_path: Path) -> None:
    async def scenario() -> str:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            async with open_pool(tmp_path, port=other.getsockname()[1]) as bench:
                return await lost_reason(bench)

    assert "to be free, found another program on it" in asyncio.run(scenario())


class Frail:
    """A post whose servers end as soon as they are up."""

    def __init__(self, hired: list[Frail], *, lost: bool) -> None:
        hired.append(self)
        self.is_lost = lost

    async def start(self) -> Up:
        return Up(url="http://127.0.0.1:9/v1", key="k", pid=1, healthy_s=1.0, first_token_s=2.0)

    async def wait(self) -> Down:
        return Down(kind=None, reason="hung")

    async def is_well(self) -> bool:
        return False

    async def figures(self) -> Figures:
        return Figures(prompt_tokens=10)

    async def stop(self, grace_s: float) -> Figures:
        return Figures()

    def discard(self) -> None:
        return


@pytest.mark.parametrize(("lost", "hired_in_all"), [(False, 1), (True, 4)])
def test_restarts_in_a_row_are_bounded_and_a_lost_actor_is_replaced(lost, hired_in_all) -> None:
    hired: list[Frail] = []
    said: list[str] = []

    async def scenario() -> Pool:
        pool = Pool(
            PoolConfig(max_restarts=3, restart_backoff_s=0.001),
            hire=lambda number: Frail(hired, lost=lost),
            connect=connect,
            quiet=Quiet("cuda"),
            warn=said.append,
        )
        while not pool.seats[0].lost:
            await asyncio.sleep(0.001)
        with pytest.raises(WorkerLost, match=r"hung .4 failures in a row; .*max_restarts"):
            await pool.ready()
        await pool.close()
        return pool

    pool = asyncio.run(scenario())
    assert pool.seats[0].starts == 4
    assert len(said) == 3
    assert len(hired) == hired_in_all
    assert pool.figures.prompt_tokens == 10 * hired_in_all, "what dead posts did still counts"


def test_a_server_dies_with_whoever_started_it(tmp_path: Path) -> None:
    """The starter is killed outright; its server and the server's engine go too."""
    fake = FakeVllm(folder=tmp_path / "env").make()
    starter = (
        "import asyncio, sys\n"
        "from kopt.actors.programmers.vllm.replica import Replica\n"
        "from kopt.actors.programmers.vllm_config import PoolConfig, VllmConfig\n"
        f"pool = PoolConfig(python={str(fake.python)!r})\n"
        f"config = VllmConfig(model={str(fake.model)!r}, vllm=pool)\n"
        f"place = dict(number=0, host='127.0.0.1', device='cpu', log_dir={str(tmp_path)!r})\n"
        "async def main():\n"
        "    replica = Replica(config, **place)\n"
        "    up = await replica.start()\n"
        "    print(up.pid, flush=True)\n"
        "    await replica.wait()\n"
        "asyncio.run(main())\n"
    )

    async def scenario() -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", starter, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        pid = int(await process.stdout.readline())
        process.kill()
        await process.wait()
        return pid

    pid = asyncio.run(scenario())
    give_up_s = time.monotonic() + 10
    while group_of(pid) and time.monotonic() < give_up_s:
        time.sleep(0.05)
    assert group_of(pid) == []


def group_of(pgid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == pgid and fields[0] != "Z":
            found.append(int(entry.parent.name))
    return found
