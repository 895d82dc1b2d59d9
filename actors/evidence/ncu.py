"""Counters by Nsight Compute: one run of ncu over one or several candidates.

Clocks are never touched (`--clock-control none`), caches are flushed before each pass, so that a
kernel is seen cold as the race times it; replay is by kernel, which is right for Triton and CUDA
alike. Of each kernel and launch configuration two launches are read, of the kernels that matter
alone. Times under ncu are used as shares only. Source: profiling notes §C.2, §C.3.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kopt.actors.evidence.capabilities import Capabilities
from kopt.actors.evidence.command import Running
from kopt.actors.evidence.laps import stage_seconds
from kopt.actors.evidence.ncu_left import (
    LOG,
    REPORT,
    SAID,
    one_line,
    own_words,
    printed,
    said_of_jobs,
)
from kopt.actors.supervisor.environment import child_environment
from kopt.evidence import EvidenceLevel
from kopt.tools.collect.ncu_raw import KEPT_COUNTERS, NcuReport, of_process, parse_raw
from kopt.tools.collect.ncu_rules import RulesReport
from kopt.tools.collect.owners import base_name
from kopt.tools.collect.unreadable import UnreadableProfile

_LOG = logging.getLogger(__name__)
START_S = 60.0
"""ncu, python, torch and a context on a cold, busy host."""
JOB_S = 60.0
"""One candidate: loading, compiling, warm-up, and every pass of its kernels."""
LAUNCHES_PER_KERNEL = 2
JOB_CPU_S = 600
NO_STOCK_FILES = "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT"
"""Keeps ncu from copying its sections into the home folder, which is new with each run."""
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
    """Stage of its process to its seconds: `start` of the first (ncu, torch), `init` (the driver),
    `open` (a context), `load`, `warm`, `count`, `exit`, and `end` of the last (ncu's own). By its
    own word."""


def means_of(has: Capabilities, *, level: EvidenceLevel) -> NcuMeans | None:
    """Return how ncu is run on a machine; None where it is not, or not asked for."""
    if level != "ncu" or not has.counters.ok or has.ncu_path is None:
        return None
    return NcuMeans(
        path=has.ncu_path,
        counters=has.counter_names,
        forks=has.ncu_forks,
        landlock=has.ncu_landlock,
    )


def ncu_environment(folder: Path, *, num_threads: int, cache_dir: Path) -> dict[str, str]:
    """Return the environment of a run, before it has jobs.

    Args:
        folder: of the run.
        num_threads: of OpenMP and of torch.
        cache_dir: kopt's cache on this node.
    """
    scrubbed = child_environment(scratch=folder, num_threads=num_threads, cache_dir=cache_dir)
    return scrubbed | {NO_STOCK_FILES: "1"}


class NcuRun:
    """One run of ncu. It may begin before its jobs are known: starting takes longer than a job.

    Whoever makes one closes it.
    """

    def __init__(
        self,
        means: NcuMeans,
        *,
        folder: Path,
        kernels: Sequence[str] = (),
        with_rules: bool = False,
        arch: str = "",
    ) -> None:
        """Start nothing yet.

        Args:
            means: how ncu is run here.
            folder: of this run, empty.
            kernels: names of those that matter, as any profiler gives them; empty: all.
            with_rules: NVIDIA's rules too, which costs more passes.
            arch: of the GPU, `sm_90`, for what every job would find out; empty leaves it to them.
        """
        self._means = means
        self._folder = folder
        self._with_rules = with_rules
        task_file = folder / "task.json"
        self._task_file = task_file
        program = [sys.executable, "-m", "kopt.actors.evidence.forward_once"]
        self._command = [
            *ncu_command(means, kernels=kernels, folder=folder, with_rules=with_rules),
            *(*program, repr(time.time()), str(os.getpid()), arch or "-", str(task_file)),
        ]
        self._running: Running | None = None

    def begin(self, environment: Mapping[str, str]) -> None:
        """Start ncu and its program, which then waits for jobs and touches no device.

        Args:
            environment: the whole of it, until each job brings its own.
        """
        with suppress(OSError):  # `count` starts it again, and says what is wrong
            self._running = self._started(environment)

    def count(self, jobs: Sequence[NcuJob]) -> list[Counted]:
        """Return what was counted of each job; once.

        Args:
            jobs: in a run of several, each forks; where ncu does not see that, give one.
        """
        means, folder = self._means, self._folder
        try:
            self._hand_over(jobs)
            if self._running is None or not self._running.is_going():
                self.close()
                self._running = self._started(jobs[0].environment)
            done = self._running.finish(timeout_s=START_S + JOB_S * len(jobs))
            ended_s = time.time()
            text, rules = printed(means.path, done, folder=folder, with_rules=self._with_rules)
            report = parse_raw(text, keep=KEPT_COUNTERS.union(means.counters))
        except (OSError, UnreadableProfile) as error:
            _LOG.info("%s\n%s", error, own_words(folder))
            jobs_said = said_of_jobs(folder, len(jobs))
            return [
                Counted(failed=one_line(said.get("failed") or str(error))) for said in jobs_said
            ]
        said_of_all = said_of_jobs(folder, len(jobs))
        found = [self._counted(said, report, rules=rules) for said in said_of_all]
        at_s = said_of_all[-1].get("at_s")
        if isinstance(at_s, int | float):
            end = stage_seconds({"end": ended_s - at_s})
            found[-1] = replace(found[-1], took_s={**found[-1].took_s, **end})
        return found

    def close(self) -> None:
        """End what is still going."""
        if self._running is not None:
            self._running.kill()
            self._running = None

    def _started(self, environment: Mapping[str, str]) -> Running:
        for name in (LOG, REPORT, SAID):
            (self._folder / name).unlink(missing_ok=True)
        return Running(self._command, environment=environment, folder=self._folder)

    def _hand_over(self, jobs: Sequence[NcuJob]) -> None:
        """Write the task that the program waits for, whole."""
        task = {
            "jobs": [asdict(job) for job in jobs],
            "forks": self._means.forks,
            "job_s": JOB_S,
            "report": str(self._folder / SAID),
        }
        aside = self._task_file.with_suffix(".new")
        aside.write_text(json.dumps(task), encoding="utf-8")
        os.replace(aside, self._task_file)

    def _counted(
        self, said: Mapping[str, Any], report: NcuReport, *, rules: RulesReport | None
    ) -> Counted:
        forks = self._means.forks
        took_s = stage_seconds(said.get("took_s"))
        own = of_process(report, int(said["pid"])) if forks and "pid" in said else report
        if said.get("failed") or own is None or (forks and "pid" not in said):
            why = str(said.get("failed") or "none of its kernels were counted")
            _LOG.info("%s\n%s", why, own_words(self._folder))
            return Counted(failed=f"ncu: {one_line(why)}", took_s=took_s)
        return Counted(report=own, rules=rules, took_s=took_s)


def count(
    jobs: Sequence[NcuJob],
    *,
    means: NcuMeans,
    kernels: Sequence[str],
    folder: Path,
    with_rules: bool = False,
    arch: str = "",
) -> list[Counted]:
    """Run ncu once, and return what it counted of each job; arguments as of `NcuRun`."""
    run = NcuRun(means, folder=folder, kernels=kernels, with_rules=with_rules, arch=arch)
    try:
        return run.count(jobs)
    finally:
        run.close()


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
    return [*command, *pages, "--log-file", str(folder / LOG)]
