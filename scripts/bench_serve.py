"""How fast the reward service answers, and that it answers every request once, whatever fails.

Usage: python scripts/bench_serve.py [requests=10000] [completions=2000] [clients=8] [--json]

The service runs in a process of its own, over HTTP, with the verdict cache on disk; candidates are
judged by a stand-in that takes no device. Two parts:

* cached verdicts: completions that the service has judged (`known`), and that a service before it
  had judged and this one finds on disk (`stored`), in batches of 32;
* mixed requests of several clients: one to eight completions, among them such without code, with
  ten code blocks, for a problem that is not there, or no request at all, while the evaluator loses
  workers, raises, and takes seconds for some candidates, more come than may wait, and clients hang
  up in the middle. Each request that is one must get one answer for each completion, in order, and
  equal completions equal verdicts. A request that nobody hears the answer of is sent again.
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import multiprocessing
import multiprocessing.connection
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from kopt.actors.cache.store import Store
from kopt.actors.cached_evaluator import CachedEvaluator
from kopt.actors.config import EvaluateConfig
from kopt.actors.serve.app import make_app
from kopt.actors.serve.client import RewardClient
from kopt.actors.serve.config import ServeConfig
from kopt.actors.serve.service import RewardService
from kopt.candidate import Candidate
from kopt.errors import ConfigError, WorkerLost
from kopt.evaluation import Evaluation
from kopt.ports import Target
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.testing.fakes import InstantEvaluator

PROBLEM = Problem(name="set/a", source="class Model: ...\n")
TARGET = Target(device="cpu", name="a CPU", arch="x86_64", languages=("cpp", "torch"))
FACTS = {"sandbox": "process+user"}
BATCH = 32
SLOW_S = 3.0
TEN_BLOCKS = "\n".join(f"```python\nx = {number}\n```" for number in range(10))
MALFORMED = (b"{", b'{"items": 3}', b'{"items": [{"completion": "x", "colour": 1}]}', b"\xff\xfe")


class Faulty(InstantEvaluator):
    """Judges by the candidate's digest, and fails now and then where it is told to."""

    def __init__(self, *, fails: bool) -> None:
        super().__init__()
        self._fails = fails
        self._draw = random.Random(1)

    async def target(self) -> Target:
        """Return the device that verdicts are for."""
        return TARGET

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        """Judge, or fail.

        Raises:
            WorkerLost: as it was told to.
            RuntimeError: likewise.
        """
        if self._fails:
            fault = self._draw.random()
            if fault < 0.10:
                raise WorkerLost("device 0", "killed, as it was told to")
            if fault < 0.15:
                raise RuntimeError("a fault of the evaluator's own")
            # Some candidates are slow each time.
            if hashlib.sha256(candidate.source.encode()).digest()[0] < 8:
                await asyncio.sleep(SLOW_S)
        return await super().evaluate(problem, candidate)


def serve(
    pipe: multiprocessing.connection.Connection,
    store: str,
    bounds: dict[str, Any],
    *,
    fails: bool,
) -> None:
    """Serve on a free port, which is sent through the pipe, until it says to stop."""
    import uvicorn

    async def facts(device: str) -> list[dict[str, str]]:
        del device
        return [FACTS]

    async def run() -> None:
        config = ServeConfig.model_validate(bounds)
        judge = CachedEvaluator(
            Faulty(fails=fails),
            config=EvaluateConfig(),
            store=Store(root=Path(store), kind="verdict", max_bytes=1 << 30, least_free_bytes=0),
            facts=facts,
        )
        service = RewardService(
            judge, target=TARGET, rule=RewardRule(), config=config, problems=[PROBLEM]
        )
        app = make_app(service, config=config)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        running = asyncio.create_task(server.serve())
        while not (server.started and server.servers):
            await asyncio.sleep(0.01)
        pipe.send(server.servers[0].sockets[0].getsockname()[1])
        await asyncio.to_thread(pipe.recv)
        server.should_exit = True
        await running
        await service.close()

    import logging

    logging.disable(logging.CRITICAL)  # the faults are ours
    asyncio.run(run())


class Server:
    """A service in a process of its own. To be used as a context manager."""

    def __init__(self, store: str, *, fails: bool = False, **bounds: int | float) -> None:
        """Take the folder of the verdict cache and bounds of ServeConfig."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, store, bounds), kwargs={"fails": fails}
        )

    def __enter__(self) -> str:
        self._process.start()
        return f"http://127.0.0.1:{self._pipe.recv()}"

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            self._pipe.send("stop")
        self._process.join(20)
        if self._process.is_alive():
            self._process.kill()


def completion(number: int) -> str:
    """A completion that holds a candidate; those of other numbers hold another."""
    body = f"    number = {number}\n" + "".join(f"    # line {n}\n" for n in range(40))
    return (
        f"strategy: way {number}\n```python\nimport torch\nclass ModelNew(torch.nn.Module):\n{body}"
        "    def forward(self, x): return x\n```\n"
    )


def cached(folder: str, *, completions: int) -> dict[str, float]:
    """Return verdicts a second, of those that the service knows, and of those on disk."""
    items = [{"problem": PROBLEM.name, "completion": completion(n)} for n in range(completions)]
    with Server(folder, max_waiting=completions) as url:
        _rate(url, items)
    with Server(folder, max_waiting=completions) as url:
        return {"stored_per_s": _rate(url, items), "known_per_s": _rate(url, items)}


def _rate(url: str, items: list[dict[str, Any]]) -> float:
    began_s = time.monotonic()

    def ask(part: list[dict[str, Any]]) -> None:
        client = RewardClient(url)
        for start in range(0, len(part), BATCH):
            found = client.judge(part[start : start + BATCH])
            if any(each["status"] != "done" for each in found):
                raise AssertionError(f"not judged: {found[0]}")

    threads = [threading.Thread(target=ask, args=(items[start::2],)) for start in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return round(len(items) / (time.monotonic() - began_s), 1)


class Tally:
    """What became of the mixed requests."""

    def __init__(self) -> None:
        """Begin with none."""
        self.lock = threading.Lock()
        self.answers: Counter[int] = Counter()
        """Request to answers it got."""
        self.words: Counter[str] = Counter()
        self.verdicts: dict[str, tuple[str, float | None]] = {}
        """Completion to kind and reward; every later one must be equal."""
        self.contradictions = 0
        self.waited_s: list[float] = []


def mixed(url: str, *, requests: int, clients: int) -> dict[str, Any]:
    """Send the requests, and return what became of them."""
    tally = Tally()
    began_s = time.monotonic()
    threads = [
        threading.Thread(target=_client, args=(url, range(start, requests, clients), tally))
        for start in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waited_s = sorted(tally.waited_s)
    return {
        "requests": requests,
        "answered_once": sum(times == 1 for times in tally.answers.values()),
        "contradictions": tally.contradictions,
        "wall_s": round(time.monotonic() - began_s, 1),
        "p50_ms": round(1e3 * waited_s[len(waited_s) // 2], 1),
        "p99_ms": round(1e3 * waited_s[int(0.99 * len(waited_s))], 1),
        **dict(sorted(tally.words.items())),
    }


def _client(url: str, numbers: range, tally: Tally) -> None:
    draw = random.Random(numbers.start)
    for number in numbers:
        shape = draw.random()
        if shape < 0.03:
            word = "refused" if _refused(url, draw.choice(MALFORMED)) else "malformed but taken"
            with tally.lock:
                tally.answers[number] += 1
                tally.words[word] += 1
            continue
        items = [_item(draw) for _ in range(draw.randint(1, 8))]
        body = json.dumps({"items": items, "wait_s": draw.choice((0.0, 0.05, 0.5))}).encode()
        if shape < 0.06:  # hangs up; the request counts once it is sent again
            _hang_up(url, body)
            with tally.lock:
                tally.words["hung up"] += 1
        _ask(url, body, number=number, items=items, tally=tally)


def _item(draw: random.Random) -> dict[str, Any]:
    kind = draw.random()
    if kind < 0.05:
        return {"problem": PROBLEM.name, "completion": "I have no code for you."}
    if kind < 0.08:
        return {"problem": PROBLEM.name, "completion": TEN_BLOCKS}
    if kind < 0.10:
        return {"problem": "set/nowhere", "completion": completion(1)}
    return {"problem": PROBLEM.name, "completion": completion(draw.randrange(100_000, 103_000))}


def _ask(url: str, body: bytes, *, number: int, items: list[dict[str, Any]], tally: Tally) -> None:
    """Send a request until it is taken, and count its answer."""
    while True:
        began_s = time.monotonic()
        status, reply = _post(url, body)
        if status == 429:
            with tally.lock:
                tally.words["told to wait"] += 1
            time.sleep(0.05)
            continue
        break
    found = json.loads(reply)["items"] if status == 200 else []
    with tally.lock:
        tally.waited_s.append(time.monotonic() - began_s)
        tally.answers[number] += len(found) == len(items)
        tally.words[f"http {status}"] += 1
        for item, answer in zip(items, found, strict=False):
            tally.words[f"{answer['status']} {answer['kind'] or ''}".strip()] += 1
            if answer["status"] == "done":
                verdict = answer["kind"], answer["reward"]
                if tally.verdicts.setdefault(item["completion"], verdict) != verdict:
                    tally.contradictions += 1


def _post(url: str, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/judgements", body=body, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def _refused(url: str, body: bytes) -> bool:
    status, _ = _post(url, body)
    return 400 <= status < 500


def _hang_up(url: str, body: bytes) -> None:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    connection.request("POST", "/v1/judgements", body=body)
    connection.close()


def main() -> int:
    """Measure, and print one line for each figure; 1 where an answer is missing."""
    settings = dict(each.split("=", 1) for each in sys.argv[1:] if "=" in each)
    unknown = set(settings) - {"requests", "completions", "clients"}
    if unknown:
        raise ConfigError(f"{sorted(unknown)[0]}: expected requests, completions or clients")
    requests = int(settings.get("requests", "10000"))
    with tempfile.TemporaryDirectory(prefix="bench-serve-") as folder:
        result: dict[str, Any] = cached(
            f"{folder}/cached", completions=int(settings.get("completions", "2000"))
        )
        with Server(f"{folder}/mixed", fails=True, max_waiting=64, max_running=16) as url:
            result |= mixed(url, requests=requests, clients=int(settings.get("clients", "8")))
            health = RewardClient(url).health()
    result |= {"still_waiting": health["waiting"], "judged": health["judged"]}
    if "--json" in sys.argv:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name}: {value}")
    return 0 if result["answered_once"] == requests and not result["contradictions"] else 1


if __name__ == "__main__":
    sys.exit(main())
