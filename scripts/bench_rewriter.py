"""What the rewriter gains over eager torch and `torch.compile`, problem by problem.

Usage: python scripts/bench_rewriter.py [device=cpu|cuda] [problems=builtin/*,…] [levels=level2,…]
           [variants=0] [seed=0] [candidates=8] [budget_s=0] [limit_s=1500] [order=FILE.json]
           [rows=FILE.csv] [ladder=strict] [fold=call|cached] [max_autotune=0] [--json]

Each problem gets up to `candidates` of the rewriter's candidates: those it writes from the root,
then those from the best of them; after `budget_s` of a problem (0: no limit) none is begun. They
are judged by the evaluator of `kopt run`: one problem at a time on a CPU, as many as a device has
in flight on a GPU, timed one by one. The best is the one with the highest low end of its interval.
`levels=level1,level3` stands for KernelBench's problems of these levels; `problems=none
variants=24` takes problems of our own making instead, which nobody tuned for
(bench_rewriter_variants.py). `order` is what rewriter_coverage.py --json wrote: the problems with
the largest expected gain come first.

Figures of a problem are those of its best candidate; a problem without a correct one counts 1.00,
as the reference itself. `over_eager` and `over_compile` chain the interleaved ratio to the better
baseline with the two baselines' times, which the session measures interleaved. Degenerate problems
are in rows, not in means. `plain` is the speed-up of the best candidate that does not take float32
products as three tf32 products each. `propose_ms` leaves out the first candidate, whose time
(`capture_ms`) holds the reading of the problem.

Rows go to a CSV as they are found, and problems that have one are skipped: a run that was cut goes
on. No problem is begun whose budget would outlast `limit_s`. `max_autotune=15` measures that
baseline too, on as many problems. The last line with --json is one object, `geomean_eager` and
`geomean_compile` last.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from bench_rewriter_judge import Judge, Tried, try_problem
from bench_rewriter_rows import Row, append, figures, finite, read, report, row_of
from bench_rewriter_variants import variants

from kopt.actors.cluster import open_cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.devices.base import describe
from kopt.actors.rewriter.plan import Fold
from kopt.data.manifest import cpu_model, versions
from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.resolve import resolve
from kopt.environment import cache_dir
from kopt.errors import ConfigError
from kopt.problem import Problem

DEFAULTS = {
    "device": "cpu",
    "problems": "",
    "levels": "",
    "variants": "0",
    "seed": "0",
    "candidates": "8",
    "ladder": "strict",
    "fold": "call",
    "budget_s": "0",
    "limit_s": "1500",
    "order": "",
    "rows": "",
    "max_autotune": "0",
}
SECRET = 20_260_101
"""Of the hidden inputs: the same from run to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    device: Literal["cpu", "cuda"]
    problems: tuple[str, ...]
    variants: int
    seed: int
    candidates: int
    evaluate: EvaluateConfig
    fold: Fold
    budget_s: float
    limit_s: float
    order: Path | None
    rows: Path | None
    max_autotune: int


def main() -> None:
    """Run and print."""
    options = parse(sys.argv[1:])
    try:
        target = describe(options.device)
        chosen = resolve(options.problems, ProblemsConfig()) if options.problems else []
    except ConfigError as error:
        sys.exit(str(error))
    chosen += variants(options.variants, seed=options.seed)
    if options.order is not None:
        chosen = by_gain(chosen, options.order)
    if not chosen:
        sys.exit("no problem: give problems=…, or variants=N")
    began_s = time.monotonic()
    rows = asyncio.run(run(options, chosen))
    result = {
        "device": options.device,
        "fold": options.fold,
        "device_name": target.name,
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "versions": versions(),
        "wall_s": time.monotonic() - began_s,
        "missing": [p.name for p in chosen if p.name not in {row.problem for row in rows}],
        **figures(rows),
    }
    report(rows, result)
    if "--json" in sys.argv:
        print(json.dumps(finite(result)))


async def run(options: Options, chosen: list[Problem]) -> list[Row]:
    """Return the rows of these problems, those of an earlier run included."""
    known = {row.key: row for row in read(options.rows)} if options.rows else {}
    wanted = {problem.problem_id: problem for problem in chosen}
    rows = [known[key] for key in wanted if key in known]
    ends_s = time.monotonic() + options.limit_s
    waiting = [problem for key, problem in wanted.items() if key not in known]
    if not waiting:
        return rows
    # A sample spread over the whole list.
    step = max(1, len(chosen) // options.max_autotune) if options.max_autotune else 0
    sampled = {p.problem_id for p in chosen[::step][: options.max_autotune]} if step else set()
    with (
        tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder,
        open_cluster(ClusterConfig(), device=options.device) as cluster,
    ):
        os.environ.setdefault("KOPT_CACHE_DIR", folder)
        for tuned in (False, True):
            judge = Judge(
                cluster,
                evaluate=options.evaluate.model_copy(update={"max_autotune": tuned}),
                cache_dir=cache_dir(),
                fold=options.fold,
            )
            queue = deque(p for p in waiting if (p.problem_id in sampled) is tuned)
            takers = [
                _take(judge, queue, options, rows, ends_s=ends_s)
                for _ in range(cluster.in_flight * cluster.devices)
            ]
            await asyncio.gather(*takers)
            judge.close()
    return rows


async def _take(
    judge: Judge, queue: deque[Problem], options: Options, rows: list[Row], *, ends_s: float
) -> None:
    """Try problems of a queue until it is empty or the time is over."""
    budget_s = options.budget_s or math.inf
    while queue:
        left_s = ends_s - time.monotonic()
        if left_s < (budget_s if math.isfinite(budget_s) else 0.0):
            return
        problem = queue.popleft()
        tried: Tried = await try_problem(
            judge, problem, candidates=options.candidates, budget_s=budget_s
        )
        row = row_of(problem, tried, ladder=options.evaluate.ladder)
        rows.append(row)
        print(f"  {row.line()}", file=sys.stderr, flush=True)
        if options.rows:
            append(options.rows, row)


def by_gain(problems: list[Problem], path: Path) -> list[Problem]:
    """Return problems with those first that a coverage table expects most of."""
    listed = json.loads(path.read_text(encoding="utf-8"))["rows"]
    gains = {row["problem"]: row["gain"] or 0.0 for row in listed}
    return sorted(problems, key=lambda problem: -gains.get(problem.name, 0.0))


def parse(words: list[str]) -> Options:
    """Read the command line."""
    given = dict(word.lstrip("-").replace("-", "_").split("=", 1) for word in words if "=" in word)
    settings = {**DEFAULTS, **given}
    odd = [word for word in words if "=" not in word and word != "--json"]
    try:
        if (
            set(given) - set(DEFAULTS)
            or odd
            or settings["device"] not in ("cpu", "cuda")
            or settings["fold"] not in get_args(Fold)
        ):
            raise ValueError
        levels = [f"kernelbench/{level}/*" for level in settings["levels"].split(",") if level]
        names = [name for name in settings["problems"].split(",") if name]
        names = [*names, *levels] or ["builtin/*"]
        return Options(
            device=cast("Literal['cpu', 'cuda']", settings["device"]),
            problems=() if names == ["none"] else tuple(names),
            variants=int(settings["variants"]),
            seed=int(settings["seed"]),
            candidates=max(1, int(settings["candidates"])),
            evaluate=EvaluateConfig.model_validate(
                {"ladder": settings["ladder"], "secret": SECRET}
            ),
            fold=cast("Fold", settings["fold"]),
            budget_s=float(settings["budget_s"]),
            limit_s=float(settings["limit_s"]),
            order=Path(settings["order"]) if settings["order"] else None,
            rows=Path(settings["rows"]) if settings["rows"] else None,
            max_autotune=int(settings["max_autotune"]),
        )
    except ValueError:
        expected = " ".join(f"{name}={value}" for name, value in DEFAULTS.items())
        sys.exit(f"expected words such as {expected} --json, found {' '.join(words)}")


if __name__ == "__main__":
    main()
