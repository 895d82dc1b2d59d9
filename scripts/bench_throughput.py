"""Candidates that kopt judges in an hour, against the evaluator that its users have today.

Usage: python scripts/bench_throughput.py [device=cpu|cuda] [candidates=12] [samples=12]
           [limit_s=600] [sides=kopt,other] [compile=true] [hang=true] [--json]

Mixed candidates of four problems (`candidates` of each): right, wrong in several ways, crashing,
not compiling; on `cuda` in Triton, CUDA and torch, on `cpu` in C++. Through kopt by the evaluator
of `kopt run`, first with an empty cache, then with builds and baselines in place and new workers.
A sample goes through the other evaluator, each candidate in a fresh process: on `cuda` that is
KernelBench's own `eval_kernel_against_ref`, from the clone that KOPT_KERNELBENCH names, on `cpu`
torch's stock `load_inline` with the same steps. A candidate that hangs is timed apart.

Judged candidates count alike, whatever the verdict; verdicts on which the two differ are listed.
The time is shared out: a part that runs out begins nothing more, and its rate is of what it
judged. Each part is printed when it ends. The last line with --json is one object, `ratio` last:
kopt's rate to the other's, cold.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_throughput_candidates import Mixed, hanging_candidate, mixed_candidates, sample_of
from bench_throughput_kopt import Phase, judge, set_up
from bench_throughput_others import Judged, judge_each
from bench_throughput_problems import Device
from bench_throughput_report import (
    compared,
    other_figures,
    phase_figures,
    report,
    report_hardware,
    report_other,
    report_phase,
)

from kopt.actors.cluster import Cluster, open_cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig, TimeoutConfig
from kopt.actors.devices.base import describe
from kopt.data.manifest import cpu_model, versions
from kopt.environment import KERNELBENCH_VARIABLE, kernelbench_clone
from kopt.errors import ConfigError

DEFAULTS = {
    "device": "cpu",
    "candidates": "12",
    "samples": "12",
    "limit_s": "600",
    "sides": "kopt,other",
    "compile": "true",
    "hang": "true",
}
SHARES = {"kopt_cold": 0.34, "kopt_warm": 0.14, "other_cold": 0.40, "other_warm": 0.12}
"""Of the time; what a part leaves goes to those after it."""
HANG_S = 10.0
"""Deadline of a forward call where the hanging candidate is timed."""
SECRET = 20_260_101
"""Of the hidden inputs: the same from run to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    device: Device
    candidates: int
    samples: int
    limit_s: float
    sides: frozenset[str]
    compile: bool
    hang: bool


class Budget:
    """Shares the time out over the parts that are still to come."""

    def __init__(self, limit_s: float, parts: list[str]) -> None:
        """Begin."""
        self._ends_s = time.monotonic() + limit_s
        self._parts = list(parts)

    def next_s(self, part: str) -> float:
        """Return the seconds for the part that begins now."""
        total = sum(SHARES[name] for name in self._parts)
        self._parts.remove(part)
        return max(1.0, (self._ends_s - time.monotonic()) * SHARES[part] / total)


def main() -> None:
    """Run and print."""
    options = parse(sys.argv[1:])
    clone = kernelbench_clone() or ""
    if options.device == "cuda" and "other" in options.sides and not clone:
        sys.exit(f"expected a clone of KernelBench in {KERNELBENCH_VARIABLE}, found none; set it")
    candidates = mixed_candidates(options.device, per_problem=options.candidates)
    parts = [name for name in SHARES if name.split("_")[0] in options.sides]
    budget = Budget(options.limit_s, parts)
    result = hardware(options.device)
    report_hardware(result)
    kopt: dict[str, Phase] = {}
    other: dict[str, list[Judged]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        if "kopt" in options.sides:
            try:
                kopt, more = run_kopt(options, candidates, folder=Path(folder), budget=budget)
            except ConfigError as error:
                sys.exit(str(error))
            result |= more
        if "other" in options.sides:
            sample = sample_of(candidates, size=options.samples)
            name = "eval_kernel_against_ref" if options.device == "cuda" else "stock load_inline"
            result["other"] = name
            for form in ("cold", "warm"):
                print(f"the other evaluator, {form}", file=sys.stderr)
                other[form] = judge_each(
                    # Warm is who was judged before: the builds of others are not there.
                    sample[: len(other["cold"])] if form == "warm" else sample,
                    device=options.device,
                    folder=Path(folder) / "other",
                    clone=clone,
                    limit_s=budget.next_s(f"other_{form}"),
                )
                report_other(form, other_figures(other[form], candidates), name=name)
    result |= compared(candidates, kopt=kopt, other=other)
    report(result)
    if "--json" in sys.argv:
        print(json.dumps(result))


def parse(words: list[str]) -> Options:
    """Read the command line; `--limit-s=5` is `limit_s=5`."""
    given = {
        name.lstrip("-").replace("-", "_"): value
        for name, _, value in (word.partition("=") for word in words if word != "--json")
    }
    settings = {**DEFAULTS, **given}
    try:
        options = Options(
            device={"cpu": "cpu", "cuda": "cuda"}[settings["device"]],  # type: ignore[arg-type]
            candidates=int(settings["candidates"]),
            samples=int(settings["samples"]),
            limit_s=float(settings["limit_s"]),
            sides=frozenset(settings["sides"].split(",")),
            compile={"true": True, "false": False}[settings["compile"]],
            hang={"true": True, "false": False}[settings["hang"]],
        )
    except (KeyError, ValueError):
        options = None
    names_known = set(given) <= set(DEFAULTS)
    if options is None or not names_known or not options.sides <= {"kopt", "other"}:
        expected = " ".join(f"{name}={value}" for name, value in DEFAULTS.items())
        sys.exit(f"expected words such as {expected} --json, found {' '.join(words)}")
    if options.candidates < 1 or options.samples < 1:
        sys.exit("expected candidates and samples of 1 or more")
    return options


def hardware(device: Device) -> dict[str, Any]:
    """Return what it ran on."""
    try:
        target = describe(device)
    except ConfigError as error:
        sys.exit(str(error))
    return {
        "device": device,
        "device_name": target.name,
        "arch": target.arch,
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "versions": versions(),
    }


def run_kopt(
    options: Options, candidates: list[Mixed], *, folder: Path, budget: Budget
) -> tuple[dict[str, Phase], dict[str, Any]]:
    """Judge all candidates cold and warm, and the hanging one; return phases and figures."""
    cache_dir = folder / "cache"
    cache_dir.mkdir()
    evaluate = EvaluateConfig(secret=SECRET, compile=options.compile)
    phases: dict[str, Phase] = {}
    with open_cluster(ClusterConfig(), device=options.device) as cluster:
        figures: dict[str, Any] = {"set_up_s": set_up(cache_dir), "devices": cluster.devices}
        for form in ("cold", "warm"):
            print(f"kopt, {form}", file=sys.stderr)
            phases[form] = asyncio.run(
                judge(
                    candidates,
                    cluster=cluster,
                    evaluate=evaluate,
                    cache_dir=cache_dir,
                    limit_s=budget.next_s(f"kopt_{form}"),
                )
            )
            figures[f"kopt_{form}"] = phase_figures(phases[form], candidates)
            report_phase(form, figures[f"kopt_{form}"])
        if options.hang:
            print("kopt, the hanging candidate", file=sys.stderr)
            figures["hang"] = time_hang(options, candidates, cluster=cluster, cache_dir=cache_dir)
    return phases, figures


def time_hang(
    options: Options, candidates: list[Mixed], *, cluster: Cluster, cache_dir: Path
) -> dict[str, Any]:
    """Judge a candidate that hangs between two that do not, with a short deadline."""
    hanging = hanging_candidate(options.device)
    before = [
        mixed
        for mixed in candidates
        if mixed.problem == hanging.problem and mixed.outcome == "crashing"
    ]
    evaluate = EvaluateConfig(
        secret=SECRET, compile=False, timeouts=TimeoutConfig(correctness_s=HANG_S)
    )
    phase = asyncio.run(
        judge(
            [*before[:1], hanging],
            cluster=cluster,
            evaluate=evaluate,
            cache_dir=cache_dir,
            limit_s=120.0,
        )
    )
    found = phase.evaluations.get(hanging.candidate.candidate_id)
    timeline_s = {} if found is None else dict(found.timeline_s)
    return {
        "deadline_s": HANG_S,
        "verdict": "none" if found is None else found.verdict.kind,
        "held_s": sum(value for name, value in timeline_s.items() if not name.endswith("queued")),
        "timeline_s": timeline_s,
        "lost": phase.lost,
        "other": "its own scripts kill it after 180 s, and with it the batch; not run here",
    }


if __name__ == "__main__":
    main()
