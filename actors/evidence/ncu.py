"""Counters by Nsight Compute: one run of ncu over one or several candidates.

Clocks are never touched (`--clock-control none`), caches are flushed before each pass, so that a
kernel is seen cold as the race times it; replay is by kernel, which is right for Triton and CUDA
alike. Of each kernel and launch configuration two launches are read, of the kernels that matter
alone. Times under ncu are used as shares only. Source: profiling notes §C.2, §C.3.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kopt.actors.evidence.command import Done, run_command
from kopt.tools.collect.ncu_raw import KEPT_COUNTERS, NcuReport, of_process, parse_raw
from kopt.tools.collect.ncu_rules import RulesReport, parse_rules
from kopt.tools.collect.owners import base_name
from kopt.tools.collect.unreadable import MAX_TEXT, UnreadableProfile

_LOG = logging.getLogger(__name__)
START_S = 60.0
"""ncu, python, torch and a context on a cold, busy host."""
JOB_S = 60.0
"""One candidate: loading, compiling, warm-up, and every pass of its kernels."""
LAUNCHES_PER_KERNEL = 2
IMPORT_S = 60.0
JOB_CPU_S = 600
MAX_STAGES = 8
RULE_SECTIONS = (
    "SpeedOfLight",
    "LaunchStats",
    "Occupancy",
    "WarpStateStats",
    "MemoryWorkloadAnalysis",
    "SchedulerStats",
)
"""Whose rules are asked for; `--set full` costs three times the passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NcuMeans:
    """How ncu is run here, as the probe found it."""

    path: str
    counters: tuple[str, ...]
    forks: bool
    """Whether it sees forked processes: several candidates then share a run."""
    landlock: bool
    """Whether candidates can be kept from writing elsewhere under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NcuJob:
    """One forward call that is to be counted."""

    order: dict[str, Any]
    """JSON form of an `Order`."""
    environment: dict[str, str]
    """The whole environment of its process."""
    folder: str
    """Where it runs; its own."""
    writable: tuple[str, ...]
    """Folders in which it may write, its own and that of its builds."""
    landlock: bool
    cpu_s: int = JOB_CPU_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a run gave of one job."""

    report: NcuReport | None = None
    rules: RulesReport | None = None
    failed: str = ""
    """Why there is none, in one line."""
    took_s: Mapping[str, float] = field(default_factory=dict)
    """Stage of its process to its seconds: `start` of the first (ncu, torch), `open`, `load`,
    `warm`, `count`. By its own word."""


def count(
    jobs: Sequence[NcuJob],
    *,
    means: NcuMeans,
    kernels: Sequence[str],
    folder: Path,
    with_rules: bool = False,
) -> list[Counted]:
    """Run ncu once, and return what it counted of each job.

    Args:
        jobs: in a run of several, each forks; where ncu does not see that, give one.
        means: how ncu is run here.
        kernels: names of those that matter, as any profiler gives them; empty: all.
        folder: of this run, empty.
        with_rules: NVIDIA's rules too, which costs more passes.
    """
    forks = means.forks
    task = {
        "jobs": [asdict(job) for job in jobs],
        "forks": forks,
        "job_s": JOB_S,
        "began_s": time.time(),
        "report": str(folder / "report.jsonl"),
    }
    task_file = folder / "task.json"
    task_file.write_text(json.dumps(task), encoding="utf-8")
    python = [sys.executable, "-m", "kopt.actors.evidence.forward_once", str(task_file)]
    command = ncu_command(means, kernels=kernels, folder=folder, with_rules=with_rules)
    limit_s = START_S + JOB_S * len(jobs)
    environment = jobs[0].environment
    try:
        done = run_command(
            [*command, *python], timeout_s=limit_s, environment=environment, folder=folder
        )
        text, rules = _printed(means.path, done, folder=folder, with_rules=with_rules)
        report = parse_raw(text, keep=KEPT_COUNTERS.union(means.counters))
    except (OSError, UnreadableProfile) as error:
        _LOG.info("%s\n%s", error, _words(folder))
        jobs_said = _said(folder, len(jobs))
        return [Counted(failed=_one_line(said.get("failed") or str(error))) for said in jobs_said]
    found = []
    for said in _said(folder, len(jobs)):
        took_s = _seconds(said.get("took_s"))
        own = of_process(report, int(said["pid"])) if forks and "pid" in said else report
        if said.get("failed") or own is None or (forks and "pid" not in said):
            why = said.get("failed") or "none of its kernels were counted"
            _LOG.info("%s\n%s", why, _words(folder))
            found.append(Counted(failed=f"ncu: {_one_line(str(why))}", took_s=took_s))
        else:
            found.append(Counted(report=own, rules=rules, took_s=took_s))
    return found


def ncu_command(
    means: NcuMeans, *, kernels: Sequence[str], folder: Path, with_rules: bool
) -> list[str]:
    """Return ncu's part of the command line."""
    command = [
        means.path,
        *("--clock-control", "none"),
        *("--cache-control", "all"),
        *("--target-processes", "all"),
        *("--profile-from-start", "off"),
        *("--replay-mode", "kernel"),
        *("--filter-mode", "per-launch-config"),
        *("--launch-count", str(LAUNCHES_PER_KERNEL)),
        *("--metrics", ",".join(means.counters)),
    ]
    if kernels:
        names = sorted({re.escape(base_name(name)) for name in kernels})
        command += ["--kernel-name-base", "function"]
        command += ["--kernel-name", f"regex:(^|::)({'|'.join(names)})$"]
    if with_rules:
        for section in RULE_SECTIONS:
            command += ["--section", section]
        return [*command, "--force-overwrite", "--export", str(folder / "profile")]
    pages = ["--csv", "--page", "raw", "--print-units", "base"]
    return [*command, *pages, "--log-file", str(folder / "ncu.csv")]


def _printed(
    path: str, done: Done, *, folder: Path, with_rules: bool
) -> tuple[str, RulesReport | None]:
    """Return the raw page, and the rules.

    Raises:
        UnreadableProfile: ncu was killed at its deadline, or left nothing.
        OSError: its file cannot be read.
    """
    log = folder / "ncu.csv"
    if done.returncode is None:
        raise UnreadableProfile("ncu", f"did not end within {done.seconds:.0f} s and was killed")
    if not with_rules:
        if not log.is_file():
            words = done.output.strip().splitlines()
            raise UnreadableProfile("ncu", f"wrote nothing: {(words or ['no output'])[-1][:300]}")
        with log.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_TEXT), None
    report = folder / "profile.ncu-rep"
    if not report.is_file():
        raise UnreadableProfile("ncu", done.output[-300:].strip() or "wrote no report")
    read = [path, "--import", str(report), "--csv"]
    raw = run_command([*read, "--page", "raw", "--print-units", "base"], timeout_s=IMPORT_S)
    details = run_command([*read, "--page", "details"], timeout_s=IMPORT_S)
    return raw.output, parse_rules(details.output)


def _said(folder: Path, num_jobs: int) -> list[dict[str, Any]]:
    """What the program said of each job; empty for those it did not get to."""
    report = folder / "report.jsonl"
    lines: list[str] = []
    if report.is_file():
        with report.open(encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 20).splitlines()
    said: list[dict[str, Any]] = []
    for line in lines[:num_jobs]:
        try:
            record = json.loads(line)
        except ValueError:
            record = {}
        said.append(record if isinstance(record, Mapping) else {})  # type: ignore[arg-type]
    return [*said, *({} for _ in range(num_jobs - len(said)))]


def _seconds(said: object) -> dict[str, float]:
    """Stages and their seconds, of what a job's own process says."""
    if not isinstance(said, Mapping):
        return {}
    return {
        str(stage)[:20]: float(seconds)
        for stage, seconds in list(said.items())[:MAX_STAGES]
        if isinstance(seconds, int | float) and 0 <= seconds < JOB_CPU_S
    }


def _words(folder: Path) -> str:
    """What ncu itself said, without its table."""
    log = folder / "ncu.csv"
    if not log.is_file():
        return "no log"
    with log.open(encoding="utf-8", errors="replace") as file:
        lines = file.read(1 << 16).splitlines()
    return "\n".join(line for line in lines if line.startswith("=="))


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no reason given"
