"""A fleet, put together: run folders, one cluster, the ports, a driver for each job, one loop.

The only place where actors and driver meet. Loads ray and torch; the command imports it lazily.

What ends a job before its time (its disk, its programmer) ends no other; what ends the fleet (the
cluster, the user) leaves every job as its journal has it, and each can be resumed.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import secrets
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from kopt.actors.cluster import Cluster, kill_local, open_cluster
from kopt.actors.quiet import Quiet
from kopt.cli.alike import by_protocol, check_alike
from kopt.cli.collector import calm_collector
from kopt.cli.crew import Crew, assemble
from kopt.cli.fleet_site import Site, most_per_search, places, reserved_gpus
from kopt.cli.interrupts import next_one_ends_it
from kopt.cli.job import (
    Job,
    JobOutcome,
    ObservedSink,
    make_tasks,
    spent,
    write_job_manifest,
)
from kopt.cli.lane_report import EVERY_S, lanes_reported
from kopt.clock import SystemClock
from kopt.config import RunConfig
from kopt.data.best import write_best
from kopt.data.fold import RunState, fold, verdict_cache
from kopt.data.journal import Journal, read_events
from kopt.data.results import write_results
from kopt.driver.limits import Limits, Spent
from kopt.driver.loop import Driver, Pace, Table
from kopt.driver.stops import StopRule
from kopt.driver.task import SearchTask
from kopt.driver.turns import Turns
from kopt.driver.verdicts import SharedVerdicts
from kopt.errors import KoptError, StoreError
from kopt.evaluation import from_json
from kopt.ports import Target, Terms

FILES_PER_JOB = 4
"""Open at once, at most: its journal, its lock, and what is being read."""
WATCHED_JOBS = 32
"""Jobs whose `lanes.json` is written once a second; with more of them, each less often."""

_LOG = logging.getLogger(__name__)


def _to_log(line: str) -> None:
    _LOG.warning(line)


@dataclass(slots=True, kw_only=True)
class _Sitting:
    """A job while it runs."""

    job: Job
    journal: Journal
    earlier: RunState
    tasks: list[SearchTask]
    manifest: dict[str, Any] | None
    """As it was when the sitting began; None for a new run."""
    error: Exception | None = None

    @property
    def is_over(self) -> bool:
        return self.earlier.ended is not None and all(task.ended for task in self.tasks)


def run_fleet(
    jobs: Sequence[Job],
    *,
    resume: str,
    on_target: Callable[[Target], None] | None = None,
    warn: Callable[[str], None] = _to_log,
) -> list[JobOutcome]:
    """Run every search of every job to its end, going on with what the run folders hold already.

    Args:
        jobs: at least one, in the order of their start; each with a folder of its own.
        resume: the command that goes on with it, for whoever stops it.
        on_target: called once the device is known.
        warn: shows one line to the user that stops nothing.

    Returns:
        What became of each, in order.

    Raises:
        ConfigError: the jobs cannot be one fleet, or the cluster or device asked for is not there.
        KeyboardInterrupt: the user stopped it; every job can be resumed.
    """
    check_alike([job.config for job in jobs])
    _allow_files(FILES_PER_JOB * len(jobs))
    outcomes: dict[int, JobOutcome] = {}
    with ExitStack() as stack:
        sittings: dict[int, _Sitting] = {}
        for number, job in enumerate(jobs):
            try:
                sittings[number] = _sit(job, stack)
            except KoptError as error:
                outcomes[number] = JobOutcome(job=job, state=fold([]), error=error)
        open_ = [sitting for sitting in sittings.values() if not sitting.is_over]
        if open_:
            _drive(open_, resume=resume, on_target=on_target, warn=warn)
        for number, sitting in sittings.items():
            outcomes[number] = _outcome(sitting)
    return [outcomes[number] for number in range(len(jobs))]


def _sit(job: Job, stack: ExitStack) -> _Sitting:
    """Open a job's folder and make its tasks.

    Raises:
        StoreError: another driver has it, it is damaged or cannot be written.
    """
    with ExitStack() as own:
        journal = own.enter_context(
            Journal(job.run_dir.path, run=job.run_dir.name, clock=SystemClock())
        )
        earlier = fold(read_events(job.run_dir.path))
        for problem in job.problems:
            job.run_dir.keep_problem(problem)
        has_manifest = job.run_dir.manifest_path.exists()
        sitting = _Sitting(
            job=job,
            journal=journal,
            earlier=earlier,
            tasks=make_tasks(job.config, job.problems, earlier),
            manifest=job.run_dir.read_manifest() if has_manifest else None,
        )
        stack.push(own.pop_all())
    return sitting


def _outcome(sitting: _Sitting) -> JobOutcome:
    job, error = sitting.job, sitting.error
    state = fold(read_events(job.run_dir.path))
    try:
        write_results(job.run_dir, state)
        write_best(job.run_dir, state, keep=job.config.keep_best)
    except StoreError as full:
        error = error or full
    return JobOutcome(job=job, state=state, error=error)


def _drive(
    sittings: list[_Sitting],
    *,
    resume: str,
    on_target: Callable[[Target], None] | None,
    warn: Callable[[str], None],
) -> None:
    configs = [sitting.job.config for sitting in sittings]
    groups = [[sittings[number] for number in group] for group in by_protocol(configs)]
    drawn = secrets.randbits(63)
    for sitting in sittings:
        write_job_manifest(sitting.job, secret=_secret(sitting, drawn), earlier=sitting.manifest)
    logs = sittings[0].job.run_dir.path / "logs"
    logs.mkdir(exist_ok=True)
    with open_cluster(
        configs[0].cluster,
        device=configs[0].device,
        log_dir=logs,
        reserved_gpus=lambda device: max(
            reserved_gpus([sitting.job for sitting in group], device) for group in groups
        ),
    ) as cluster:
        if len(groups) > 1:
            warn(
                f"{len(groups)} ways of judging (evaluate): devices time one after the other, "
                "so that their jobs take turns group by group"
            )
        fleet = _Fleet(cluster, configs, drawn=drawn, on_target=on_target, warn=warn)
        with calm_collector():
            asyncio.run(_stopped_by_hand(fleet.run(groups), resume=resume))


async def _stopped_by_hand(running: Coroutine[Any, Any, None], *, resume: str) -> None:
    """Await a fleet; once the user has stopped it, a second Ctrl-C ends the process."""
    fleet = asyncio.ensure_future(running)
    try:
        await asyncio.shield(fleet)
    except asyncio.CancelledError:
        next_one_ends_it(resume=resume, leave=kill_local)
        fleet.cancel()
        await asyncio.wait([fleet])
        raise


def _secret(sitting: _Sitting, drawn: int) -> int:
    given = sitting.job.config.evaluate.secret
    return drawn if given is None else given


class _Fleet:
    """The jobs of a fleet in one event loop: what they share, and a driver for each."""

    def __init__(
        self,
        cluster: Cluster,
        configs: Sequence[RunConfig],
        *,
        drawn: int,
        on_target: Callable[[Target], None] | None,
        warn: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._clock = SystemClock()
        self._began_s = self._clock.monotonic_s()
        self._configs = configs
        self._drawn = drawn
        self._on_target = on_target
        self._warn = warn
        self._places = places(configs, cluster)
        self._turns = Turns(places=self._places, share=configs[0].fleet.share)
        self._bounded: dict[str, Spent] = {}
        """What was spent, by the limits that bound it."""

    async def run(self, groups: Sequence[Sequence[_Sitting]]) -> None:
        """Run groups of jobs that judge alike, one after the other."""
        quiet = Quiet(self._cluster.device)
        for group in groups:
            site = Site(
                self._cluster,
                [sitting.job for sitting in group],
                secret=_secret(group[0], self._drawn),
                quiet=quiet,
                warn=self._warn,
            )
            every_s = EVERY_S * max(1.0, len(group) / WATCHED_JOBS)
            try:
                ends = await asyncio.gather(
                    *(self._run(sitting, site, every_s=every_s) for sitting in group),
                    return_exceptions=True,
                )
            finally:
                await site.close()
            for sitting, end in zip(group, ends, strict=True):
                if isinstance(end, Exception):
                    sitting.error = end
                    if not isinstance(end, KoptError):
                        _LOG.error("%s ended by a fault", sitting.job.run_dir.path, exc_info=end)
                elif isinstance(end, BaseException):
                    raise end

    async def _run(self, sitting: _Sitting, site: Site, *, every_s: float) -> None:
        """Run one job to its end.

        Raises:
            KoptError: it cannot go on.
        """
        job = sitting.job
        config = job.config
        crew = await assemble(
            config,
            sitting.tasks,
            earlier=sitting.earlier,
            run=job.run_dir,
            workplace=site.workplace(job),
            judge=site.judge,
            make_profiler=partial(site.profiler, with_rules=config.findings.feedback == "rules"),
            make_programmer=site.programmer,
        )
        if self._on_target is not None:
            self._on_target(crew.target)
            self._on_target = None
        write_job_manifest(
            job,
            secret=_secret(sitting, self._drawn),
            earlier=sitting.manifest,
            device=crew.device,
        )
        driver = self._driver(sitting, site, crew)
        try:
            async with lanes_reported(
                job.run_dir.path, site.lanes, clock=self._clock, every_s=every_s
            ):
                await driver.run()
        finally:
            await site.close_own(crew.programmer, config.programmer)

    def _driver(self, sitting: _Sitting, site: Site, crew: Crew) -> Driver:
        config = sitting.job.config
        known = {key: from_json(record) for key, record in verdict_cache(sitting.earlier).items()}
        return Driver(
            sitting.tasks,
            programmer=crew.programmer,
            evaluator=crew.evaluator,
            sink=ObservedSink(sitting.journal, sitting.job.observer),
            clock=self._clock,
            target=crew.target,
            pace=Pace(
                max_in_flight=self._places,
                max_per_search=most_per_search(config),
                deterministic=config.deterministic,
            ),
            limits=Limits(**config.limits.model_dump()),
            verdicts=SharedVerdicts(known),
            spent=spent(sitting.earlier),
            terms=Terms(ladder=site.evaluate.ladder, track=site.evaluate.track),
            profiling=crew.profiling,
            remembering=crew.remembering,
            stop=StopRule(**config.stop.model_dump()),
            table=Table(
                turns=self._turns,
                arm=config.arm_name,
                priority=config.fleet.priority,
                spent=self._bounded.setdefault(config.limits.model_dump_json(), Spent()),
                began_s=self._began_s,
            ),
        )


def _allow_files(wanted: int) -> None:
    """Raise this process's bound on open files as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted + soft, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
