"""What the jobs of a fleet share: devices, lanes, caches, baselines and programmers.

Jobs that judge alike share one evaluator, so that what one job has had judged the others need not.
Programmers that keep nothing of one job (MODEL_KINDS, the rewriter) are one for all whose sections
are equal: a model is served once, and the most requests at a time are those of one user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from kopt.actors.cache.facts import judging_facts
from kopt.actors.cache.kinds import open_store
from kopt.actors.cached_evaluator import CachedEvaluator
from kopt.actors.cluster import Cluster
from kopt.actors.config import EvaluateConfig
from kopt.actors.evidence.pool import RayProfiler
from kopt.actors.pool import RayEvaluator
from kopt.actors.programmers.config import ProgrammerConfig
from kopt.actors.programmers.registry import Workplace, create_programmer
from kopt.actors.quiet import Quiet
from kopt.cli.job import Job
from kopt.config import MODEL_KINDS, RunConfig
from kopt.device_health import Quarantine
from kopt.environment import cache_dir
from kopt.lane import LaneLoad
from kopt.ports import Profiler, Programmer

SHARED_KINDS = (*MODEL_KINDS, "rewriter")
"""Programmers that jobs share: they keep nothing of a job, as a mailbox or a recording does."""
AHEAD_PER_DEVICE = 2
"""Expansions in flight for each device: one timed, and one ahead."""
SLOW_WRITER_PER_SEARCH = 4
"""Expansions in flight in one search whose programmer is a model or a person."""


class Site:
    """The evaluator of jobs that judge alike, and whoever writes and profiles for them."""

    def __init__(
        self,
        cluster: Cluster,
        jobs: Sequence[Job],
        *,
        secret: int,
        quiet: Quiet,
        warn: Callable[[str], None],
        on_quarantine: Callable[[Quarantine], None],
    ) -> None:
        """Start the lanes.

        Args:
            cluster: that is up.
            jobs: at least one; their `cluster` and `evaluate` sections are equal.
            secret: seed of the hidden inputs.
            quiet: of the cluster.
            warn: shows one line to the user.
            on_quarantine: hears once of each device that is lent no more.
        """
        config = jobs[0].config
        self._cluster = cluster
        self._jobs = jobs
        self._cluster_config = config.cluster
        self._quiet = quiet
        self._warn = warn
        self.evaluate: EvaluateConfig = config.evaluate.model_copy(update={"secret": secret})
        self._evaluator = RayEvaluator(
            cluster,
            config=config.cluster,
            evaluate=self.evaluate,
            cache_dir=cache_dir(),
            quiet=quiet,
            on_quarantine=on_quarantine,
        )
        self.judge = CachedEvaluator(
            self._evaluator,
            config=self.evaluate,
            store=open_store(cache_dir(), "verdict"),
            facts=judging_facts,
        )
        self._here = cluster.devices_here
        self._said: set[str] = set()
        self._programmers: dict[str, Programmer] = {}
        self._profilers: dict[bool, Profiler] = {}

    def grow(self, more: int) -> None:
        """Use nodes that have joined with so many devices; as many as the user said, if he did."""
        self._here += more
        self._evaluator.grow(self._cluster_config.devices or self._here, here=self._here)

    def lanes(self) -> list[LaneLoad]:
        """Return how full the lanes are now."""
        return self._evaluator.lanes()

    def workplace(self, job: Job) -> Workplace:
        """Return where a job's programmer works."""
        return Workplace(
            cluster=self._cluster,
            cluster_config=self._cluster_config,
            evaluate=self.evaluate,
            quiet=self._quiet,
            run_dir=job.run_dir.path,
            arm=job.config.arm_name,
            warn=self._warn if not job.label else partial(self._warn_of, job.label),
            keep_figures=partial(self._keep_figures, job),
        )

    def programmer(self, config: ProgrammerConfig, workplace: Workplace) -> Programmer:
        """Return the programmer of a section: another job's, where jobs share it.

        Raises:
            ConfigError: it cannot be set up as the section says.
        """
        if config.kind not in SHARED_KINDS:
            return create_programmer(config, workplace)
        key = config.model_dump_json()
        if key not in self._programmers:
            self._programmers[key] = create_programmer(config, workplace)
        return self._programmers[key]

    def profiler(self, *, with_rules: bool) -> Profiler:
        """Return the profile lane, started with the first call."""
        if with_rules not in self._profilers:
            self._profilers[with_rules] = RayProfiler(
                self._cluster,
                config=self._cluster_config,
                evaluate=self.evaluate,
                cache_dir=cache_dir(),
                quiet=self._quiet,
                with_rules=with_rules,
            )
        return self._profilers[with_rules]

    async def close_own(self, programmer: Programmer, config: ProgrammerConfig) -> None:
        """Close a job's programmer, unless others may be using it."""
        if config.kind not in SHARED_KINDS:
            await programmer.close()

    async def close(self) -> None:
        """Let everybody go: no job is under way any more."""
        for programmer in self._programmers.values():
            await programmer.close()
        for profiler in self._profilers.values():
            await profiler.close()
        self._evaluator.close()

    def _warn_of(self, label: str, line: str) -> None:
        """Show a line of one job, once for all jobs that say the same."""
        if line not in self._said:
            self._said.add(line)
            self._warn(f"{label}: {line}")

    def _keep_figures(self, job: Job, figures: Mapping[str, Any]) -> None:
        """Keep a programmer's figures in the manifest of every job that it wrote for."""
        programmer = job.config.programmer
        for each in self._jobs:
            if each is job or (
                programmer.kind in SHARED_KINDS and each.config.programmer == programmer
            ):
                each.run_dir.keep_serving(figures)


def places(configs: Sequence[RunConfig], cluster: Cluster) -> int:
    """Return how many expansions of a fleet are to be under way at once.

    One expansion timed and one ahead for each device, and one for each build worker, keep every
    lane busy; more would only make the trees decide on less. Where writing takes long, what is
    being written comes on top: once for each programmer, however many jobs share it.
    """
    set_by_user = [config.max_in_flight for config in configs if config.max_in_flight]
    if len(set_by_user) == len(configs):
        return max(set_by_user)
    writing = {
        config.programmer.model_dump_json(): config.programmer.expansions_at_once
        for config in configs
    }
    return AHEAD_PER_DEVICE * cluster.devices + cluster.build_workers + sum(writing.values())


def most_per_search(config: RunConfig) -> int | None:
    """Return how many expansions of one search may be under way at once; None for no bound."""
    if config.max_in_flight_per_search is None and config.programmer.expansions_at_once:
        return SLOW_WRITER_PER_SEARCH
    return config.max_in_flight_per_search


def reserved_gpus(jobs: Sequence[Job], device: str) -> int:
    """Return the GPUs that the programmers of jobs take for themselves, those shared once."""
    sections = {job.config.programmer.model_dump_json(): job.config.programmer for job in jobs}
    return sum(section.reserved_gpus(device) for section in sections.values())
