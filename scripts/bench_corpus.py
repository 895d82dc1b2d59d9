"""How fast a corpus is sealed and exported: a run of many candidates with messages, made up.

Usage: python scripts/bench_corpus.py [candidates=100000] [processes=2] [formats=corpus,sft]
           [out=FOLDER] [--json]

The run is written through the journal, as a driver does: searches of 200 candidates, 16 of them
under way at once, a system message that all share, a prompt of four thousand characters for each
expansion, answers that hold the candidate, verdicts with their checks. Then it is sealed
(`corpus`) and exported in each format; each part in a process of its own, for its peak of memory:
its own, and that of the largest process that it started times their number.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa

from kopt.data.exports.choice import Choice
from kopt.data.exports.export import FORMATS, Format, export
from kopt.data.journal import Journal
from kopt.data.manifest import make_manifest
from kopt.data.rundir import RunDir
from kopt.events import AnswerReceived, PromptSent, RunEnded, SearchEnded, Told
from kopt.identity import canonical_json
from kopt.problem import Problem
from kopt.reward import RewardRule, reward
from kopt.testing.fakes import ManualClock, hashed_verdict, source_candidate
from kopt.testing.sample_journal import asked, made, reached, started

PER_SEARCH = 200
PER_EXPANSION = 4
AT_ONCE = 16
WORDS = [
    "load",
    "store",
    "tile",
    "warp",
    "block",
    "row",
    "column",
    "sum",
    "scale",
    "mask",
    "stride",
    "offset",
    "pointer",
    "value",
    "index",
    "grid",
    "shared",
    "register",
    "reduce",
    "maximum",
    "exponent",
    "product",
    "accumulate",
    "batch",
    "channel",
    "width",
    "height",
    "bias",
]
FAMILIES = ("norm", "softmax", "matmul", "conv", "loss", "pool", "scan", "linear")
SYSTEM = "You write kernels. " + " ".join(WORDS * 80)


def main() -> int:
    """Make the run, seal and export it, and print what it took."""
    settings = dict(each.split("=", 1) for each in sys.argv[1:] if "=" in each)
    candidates = int(settings.get("candidates", "100000"))
    processes = int(settings.get("processes", str(min(2, len(os.sched_getaffinity(0))))))
    with tempfile.TemporaryDirectory(prefix="bench-corpus-", dir=settings.get("out")) as folder:
        began_s = time.monotonic()
        run = RunDir(Path(folder) / "run")
        json_bytes = make_run(run, candidates=candidates)
        result: dict[str, Any] = {
            "candidates": candidates,
            "processes": processes,
            "made_s": round(time.monotonic() - began_s, 1),
            "json_bytes": json_bytes,
        }
        spawn = multiprocessing.get_context("spawn")
        formats = [each for each in FORMATS if each in settings.get("formats", each).split(",")]
        for each in ("corpus", *(each for each in formats if each != "corpus")):
            with ProcessPoolExecutor(1, mp_context=spawn) as pool:
                part = pool.submit(
                    measure, str(run.path), f"{folder}/{each}", each, processes=processes
                )
                result[each] = part.result()
            sys.stderr.write(f"{each}: {result[each]}\n")
        result["rows_per_s"] = round(candidates / result["corpus"]["wall_s"])
        result["rows_per_cpu_s"] = round(candidates / result["corpus"]["cpu_s"])
        result["share_of_json"] = round(result["corpus"]["bytes"] / json_bytes, 4)
    if "--json" in sys.argv:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name}: {value}")
    return 0


def measure(
    run: str,
    out: str,
    format: Format,  # noqa: A002
    *,
    processes: int,
) -> dict[str, float]:
    """Export once and return seconds, bytes and the peak of memory; imports are not counted."""
    # With its first table pyarrow imports pandas, where that is installed: a second or more.
    pa.Table.from_pylist([{"warm": "up"}]).to_pylist()
    began_s, began_cpu_s = time.monotonic(), _cpu_s()
    card = export(
        [RunDir(run)],
        Path(out),
        format=format,
        choice=Choice(),
        settings={},
        processes=processes,
    )
    wall_s, cpu_s = time.monotonic() - began_s, _cpu_s() - began_cpu_s
    own, others = (
        resource.getrusage(whose).ru_maxrss / 1024
        for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "rows": sum(sum(counts.values()) for counts in card.splits.values()),
        "bytes": sum(path.stat().st_size for path in Path(out).rglob("*") if path.is_file()),
        "peak_mib": round(own + processes * others),
    }


def _cpu_s() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def make_run(run: RunDir, *, candidates: int) -> int:
    """Write a run; return how long its rows would be as JSON, messages in full, in bytes."""
    run.path.mkdir(parents=True)
    device = {"kind": "cpu", "name": "a CPU", "arch": "x86_64", "count": 1}
    run.write_manifest(make_manifest({}, name=run.name, created_ns=0, argv=["kopt"], device=device))
    json_bytes = 0
    searches = -(-candidates // PER_SEARCH)
    with Journal(run.path, run=run.name, clock=ManualClock()) as sink:
        waiting = [_search(sink, run, number) for number in range(searches)]
        under_way, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
        while under_way:
            for each in list(under_way):
                step = next(each, None)
                if step is None:
                    under_way.remove(each)
                    under_way += [waiting.pop(0)] if waiting else []
                else:
                    json_bytes += step
        sink.append("", RunEnded(failed=0))
    return json_bytes


def _search(sink: Journal, run: RunDir, number: int) -> Any:  # noqa: ANN401 - a generator of sizes
    draw = random.Random(number)
    family = FAMILIES[number % len(FAMILIES)]
    problem = Problem(
        name=f"bench/p{number}", source=f"class Model: ... # {number}\n", family=family
    )
    run.keep_problem(problem)
    name = f"{problem.name}/arm/0"
    sink.append(name, started(problem, arm="arm", seed=0))
    for ordinal in range(PER_SEARCH // PER_EXPANSION):
        sink.append(name, asked(ordinal, num_candidates=PER_EXPANSION))
        prompt = f"{number} {ordinal} " + " ".join(draw.choices(WORDS, k=600))
        messages = canonical_json([["system", SYSTEM], ["user", prompt]])
        sink.append(
            name,
            PromptSent(
                expansion=ordinal,
                messages=sink.put_text(messages),
                sampling={"model": "m", "temperature": 0.7},
                tokens=1800,
            ),
        )
        for index in range(PER_EXPANSION):
            body = "\n".join(
                f"    {' '.join(draw.choices(WORDS, k=8))} = {draw.random()}" for _ in range(25)
            )
            source = f"class ModelNew:\n{body}\n"
            candidate = source_candidate(source, strategy="fusion of loads")
            text = f"strategy: fusion of loads\n```python\n{source}```"
            sink.append(
                name,
                AnswerReceived(
                    expansion=ordinal,
                    index=index,
                    candidates=PER_EXPANSION,
                    answer=sink.put_text("{}"),
                    text=sink.put_text(text),
                    tool_calls=[],
                    tokens_in=1800,
                    tokens_out=900,
                    cost_usd=0.001,
                    exhausted=False,
                    note="",
                ),
            )
            sink.put_text(source)
            verdict = hashed_verdict(problem, candidate)
            sink.append(name, made(candidate, expansion=ordinal, index=index))
            event = reached(candidate, verdict, problem=problem, expansion=ordinal, index=index)
            sink.append(name, event)
            node = ordinal * PER_EXPANSION + index + 1
            value = reward(verdict, RewardRule())
            sink.append(name, Told(expansion=ordinal, index=index, node=node, reward=value))
            size = len(messages) + len(text) + len(source) + len(canonical_json(event.eval)) + 900
            yield size
    sink.append(name, SearchEnded(reason="budget", failed=False))


if __name__ == "__main__":
    sys.exit(main())
