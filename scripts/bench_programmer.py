"""Answers a second through the programmer `openai`, and the time that its own code adds.

Usage: python scripts/bench_programmer.py [requests=4000] [in_flight=500] [errors=0.05]
           [delay_s=1.0] [seed=0] [--json]

The scripted server runs in a process of its own and holds each request for about `delay_s`. Each
answer pays what a search pays: its prompt is built, its text is read to a candidate; the
process has torch loaded and its collector set as a fleet's driver has. Two parts:

* full: `in_flight` requests under way all the time; answers a second.
* half: half as many under way at half of that rate; overhead is the latency of an answer minus
  the time that the server held its request. Answers that needed a retry have pauses that are no
  overhead: they are left out there, and counted.

In both, every request must be answered once or fail with its reason, by the server's own count.
The last line with --json is one object.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from kopt.actors.programmers.openai import OpenAIProgrammer
from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.candidate import Candidate
from kopt.cli.collector import calm_collector
from kopt.errors import ProgrammerUnavailable
from kopt.expansion import Expansion
from kopt.ports import Attempt, Target, WriteRequest
from kopt.problem import Problem
from kopt.testing.fakes import correct, evaluation_of
from kopt.testing.openai_server.process import ServerProcess
from kopt.testing.openai_server.served import Served
from kopt.testing.small_workplace import small_workplace

DEFAULTS = {"requests": 4000.0, "in_flight": 500.0, "errors": 0.05, "delay_s": 1.0, "seed": 0.0}
PROBLEMS = ("softmax", "layer_norm", "gated_mlp", "conv_bias_hardswish")
TARGET = Target(
    device="cpu", name="bench", arch="x86_64", languages=("torch", "triton", "cuda", "cpp")
)


@dataclass(slots=True)
class Load:
    """What came of one part, by the seed of each request's sampling."""

    latency_s: dict[int, float] = field(default_factory=dict)
    candidates: int = 0
    failed: list[str] = field(default_factory=list)
    """Reasons."""
    wall_s: float = 0.0
    cpu_s: float = 0.0


def main() -> None:
    """Run both parts and print."""
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    unknown = set(given) - set(DEFAULTS)
    if unknown:
        sys.exit(f"unknown {', '.join(sorted(unknown))}; there are: {', '.join(DEFAULTS)}")
    options = DEFAULTS | {key: float(value) for key, value in given.items()}
    requests, in_flight = int(options["requests"]), int(options["in_flight"])
    common = {"errors": options["errors"], "seed": int(options["seed"])}
    full, served = _part(requests, in_flight, delay_s=options["delay_s"], **common)
    rate = len(full.latency_s) / full.wall_s
    # Half as many under way, each held as long as now: half the rate.
    half, half_served = _part(requests // 2, in_flight // 2, delay_s=in_flight / rate, **common)
    overheads_s, retried = _overheads(half, half_served)
    result = {
        "answers": len(full.latency_s),
        "candidates": full.candidates,
        "failed": len(full.failed) + len(half.failed),
        "retried_share": _retried_share(served),
        "answers_per_s": rate,
        "cpu_ms_per_answer": 1e3 * full.cpu_s / len(full.latency_s),
        "half_answers_per_s": len(half.latency_s) / half.wall_s,
        "overhead_p50_ms": 1e3 * _quantile(overheads_s, 0.50),
        "overhead_p95_ms": 1e3 * _quantile(overheads_s, 0.95),
        "overhead_p99_ms": 1e3 * _quantile(overheads_s, 0.99),
        "half_retried": retried,
        "answered_once": _answered_once(full, served) and _answered_once(half, half_served),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(
        f"{in_flight} in flight, {options['errors']:.0%} errors: {rate:.0f} answers a second "
        f"({result['cpu_ms_per_answer']:.2f} ms of processor each), {result['failed']} failed; "
        f"at {result['half_answers_per_s']:.0f} a second our own p50 "
        f"{result['overhead_p50_ms']:.1f} ms, p95 {result['overhead_p95_ms']:.1f} ms; "
        f"each answered once: {result['answered_once']}; {result['rss_mb']:.0f} MB",
        file=sys.stderr,
    )
    if "--json" in sys.argv:
        print(json.dumps(result))


def _part(
    requests: int, in_flight: int, *, delay_s: float, errors: float, seed: int
) -> tuple[Load, list[Served]]:
    options = {"author": "long", "delay_s": delay_s, "spread": 0.3, "faulty": 0.01}
    with ServerProcess(errors=errors, seed=seed, **options) as server, calm_collector():
        load = asyncio.run(_drive(server.url, requests, in_flight, delay_s))
        return load, server.served()


async def _drive(url: str, requests: int, in_flight: int, delay_s: float) -> Load:
    config = OpenAIConfig(base_url=url, max_concurrency=in_flight, backoff_s=0.1)
    programmer = OpenAIProgrammer(config, small_workplace(Path(), warn=_say))
    load, numbers = Load(), iter(range(requests))

    async def worker(place: int) -> None:
        # Not all at once: the load is to be steady from the start.
        await asyncio.sleep(delay_s * place / in_flight)
        for number in numbers:
            request = _request(number)
            began_s = time.monotonic()
            try:
                answer = await programmer.write(request)
            except ProgrammerUnavailable as error:
                load.failed.append(str(error))
            else:
                load.latency_s[answer.sampling["seed"]] = time.monotonic() - began_s
                load.candidates += len(answer.candidates)

    began_s, began_cpu_s = time.monotonic(), time.process_time()
    await asyncio.gather(*map(worker, range(in_flight)))
    load.wall_s, load.cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    await programmer.close()
    return load


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _problems() -> Sequence[Problem]:
    folder = files("kopt.data.problems.builtin")
    return [
        Problem(name=f"builtin/{name}", source=(folder / f"{name}.py").read_text(encoding="utf-8"))
        for name in PROBLEMS
    ]


ALL_PROBLEMS = _problems()


def _request(number: int) -> WriteRequest:
    """Every other one from ROOT, the others from a correct parent."""
    problem = ALL_PROBLEMS[number % len(ALL_PROBLEMS)]
    parent = None
    if number % 2:
        source = problem.source.replace("class Model(", "class ModelNew(")
        candidate = Candidate(source=source, language="torch", strategy="as it is")
        evaluation = evaluation_of(correct(1.1), problem=problem, candidate=candidate)
        parent = Attempt(candidate=candidate, evaluation=evaluation)
    return WriteRequest(
        problem=problem,
        target=TARGET,
        search=f"{problem.name}/bench/{number}",
        arm="bench",
        seed=number,
        expansion=Expansion(
            ordinal=number,
            parent_node=number % 2,
            parent=None if parent is None else parent.candidate.candidate_id,
            mode="initial" if parent is None else "optimize",
            num_candidates=1,
            first_child=0,
            seed=number,
        ),
        parent=parent,
    )


def _by_seed(served: list[Served]) -> dict[int, list[Served]]:
    records: dict[int, list[Served]] = defaultdict(list)
    for each in served:
        records[each.seed or 0].append(each)
    return records


def _overheads(load: Load, served: list[Served]) -> tuple[list[float], int]:
    """Return seconds, in order, of answers that came at the first try, and how many did not."""
    records, overheads_s = _by_seed(served), []
    for seed, latency_s in load.latency_s.items():
        if len(records[seed]) == 1:
            overheads_s.append(latency_s - records[seed][0].held_s)
    return sorted(overheads_s), len(load.latency_s) - len(overheads_s)


def _answered_once(load: Load, served: list[Served]) -> bool:
    """Whether each request that we count as answered was answered once, and no other was."""
    answers = {
        seed: sum(each.is_answer for each in records) for seed, records in _by_seed(served).items()
    }
    answered = {seed for seed, count in answers.items() if count}
    return answered == set(load.latency_s) and set(answers.values()) <= {0, 1}


def _retried_share(served: list[Served]) -> float:
    return sum(each.attempt > 0 for each in served) / len(served)


def _quantile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]


if __name__ == "__main__":
    main()
