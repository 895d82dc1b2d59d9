"""The other evaluator's turns in bench_throughput.py: each candidate in a fresh process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_throughput_candidates import Mixed
from bench_throughput_processor import tree_cpu_s

PROCESS_S = 180.0
"""KernelBench's scripts give a candidate as long (`eval_from_generations.py`)."""
SCRIPT = Path(__file__).with_name("bench_throughput_stock.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the other evaluator came to."""

    label: str
    candidate: str
    """Id."""
    language: str
    wall_s: float
    """Of the whole process."""
    judged_s: float
    """Of the evaluation in it; the rest is the interpreter."""
    cpu_s: float
    """Processor seconds of the process and of those that it started."""
    verdict: str
    """`correct`, `wrong`, `not_compiling`, `crashed`, `timed_out` or `retry`."""
    reason: str
    time_us: float | None = None
    reference_us: float | None = None
    stood_in: tuple[str, ...] = ()
    """Packages that its modules import and its evaluation does not use, and that are not here."""


def judge_each(
    sample: list[Mixed], *, device: str, folder: Path, clone: str, limit_s: float
) -> list[Judged]:
    """Judge candidates one after another until all are or the time is over.

    Each has a folder of builds of its own under `folder`: empty the first time it is judged there,
    filled the next.
    """
    began_s = time.monotonic()
    judged = []
    for mixed in sample:
        if time.monotonic() - began_s > limit_s:
            break
        judged.append(_judge(mixed, device=device, folder=folder, clone=clone))
        last = judged[-1]
        print(f"  {last.label}: {last.verdict}, {last.wall_s:.1f} s", file=sys.stderr)
    return judged


def per_hour(judged: list[Judged], *, mix: list[Mixed]) -> float:
    """Return candidates an hour, as if the sample had the languages of the whole mix.

    The mean seconds of each language are weighted with its share of the mix; languages that the
    sample lacks are left out of both.
    """
    seconds: dict[str, list[float]] = {}
    for each in judged:
        seconds.setdefault(each.language, []).append(each.wall_s)
    counts = {
        language: sum(mixed.candidate.language == language for mixed in mix) for language in seconds
    }
    total_s = sum(counts[name] * sum(each) / len(each) for name, each in seconds.items())
    return 3600.0 * sum(counts.values()) / total_s if total_s else 0.0


def _judge(mixed: Mixed, *, device: str, folder: Path, clone: str) -> Judged:
    own = folder / mixed.candidate.candidate_id[:16]
    builds = own / "builds"
    builds.mkdir(parents=True, exist_ok=True)
    job = own / "job.json"
    words = {
        "device": device,
        "clone": clone,
        "language": mixed.candidate.language,
        "reference": mixed.problem.source,
        "candidate": mixed.candidate.source,
        "build_dir": str(builds),
    }
    job.write_text(json.dumps(words), encoding="utf-8")
    began_s, began_cpu_s = time.monotonic(), tree_cpu_s()
    answer = _answer(job, own)
    wall_s, cpu_s = time.monotonic() - began_s, tree_cpu_s() - began_cpu_s
    return Judged(
        label=mixed.label,
        candidate=mixed.candidate.candidate_id,
        language=mixed.candidate.language,
        wall_s=wall_s,
        cpu_s=cpu_s,
        judged_s=float(answer.get("judged_s", wall_s)),
        verdict=str(answer["verdict"]),
        reason=str(answer.get("reason", "")),
        time_us=answer.get("time_us"),
        reference_us=answer.get("reference_us"),
        stood_in=tuple(answer.get("stood_in", ())),
    )


def _answer(job: Path, own: Path) -> dict[str, Any]:
    """Run the process; its end without an answer is a verdict too."""
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    # Nothing of kopt's toolchain, and caches of its own.
    kept = {key: value for key, value in os.environ.items() if key not in ("CXX", "PYTORCH_NVCC")}
    environment = kept | {"PATH": search, "TRITON_CACHE_DIR": str(own / "triton")}
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(job)],
        env=environment,
        cwd=own,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, said = process.communicate(timeout=PROCESS_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the group: compilers run on
        process.communicate()
        return {"verdict": "timed_out", "reason": f"no end within {PROCESS_S:g} s"}
    lines = out.splitlines()
    if process.returncode != 0 or not lines:
        last = (said.strip().splitlines() or [""])[-1]
        return {"verdict": "crashed", "reason": f"exit code {process.returncode}: {last[-300:]}"}
    return dict(json.loads(lines[-1]))
