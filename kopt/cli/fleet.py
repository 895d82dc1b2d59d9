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
from typing import Any

from kopt.actors.cluster import kill_local, open_cluster
from kopt.cli.alike import by_protocol, check_alike
from kopt.cli.collector import calm_collector
from kopt.cli.fleet_loop import FleetLoop
from kopt.cli.fleet_site import reserved_gpus
from kopt.cli.interrupts import next_one_ends_it
from kopt.cli.job import Job, JobOutcome, write_job_manifest
from kopt.cli.sitting import Sitting, outcome_of, sit
from kopt.data.fold import fold
from kopt.errors import KoptError
from kopt.ports import Target

FILES_PER_JOB = 4
"""Open at once, at most: its journal, its lock, and what is being read."""
_LOG = logging.getLogger(__name__)


def _to_log(line: str) -> None:
    _LOG.warning(line)


def run_fleet(
    jobs: Sequence[Job],
    *,
    resume: str,
    on_target: Callable[[Target], None] | None = None,
    warn: Callable[[str], None] = _to_log,
) -> list[JobOutcome]:
    """Run every search of every job to its end, going on with what the run folders hold already.

    A job whose searches all wait for answers that do not come (programmer.wait_s) is suspended.

    Args:
        jobs: at least one, in the order of their start; each with a folder of its own.
        resume: the command that goes on with it, for whoever stops it.
        on_target: called once the device is known.
        warn: shows one line to the user that stops nothing.

    Returns:
        What became of each, in order.

    Raises:
        ConfigError: the jobs cannot be one fleet, or the cluster or device asked for is not there.
        StoreError: no folder can be used: another driver has them, or they are damaged.
        KeyboardInterrupt: the user stopped it; every job can be resumed.
    """
    check_alike([job.config for job in jobs])
    _allow_files(FILES_PER_JOB * len(jobs))
    outcomes: dict[int, JobOutcome] = {}
    with ExitStack() as stack:
        sittings: dict[int, Sitting] = {}
        for number, job in enumerate(jobs):
            try:
                sittings[number] = sit(job, stack)
            except KoptError as error:
                outcomes[number] = JobOutcome(job=job, state=fold([]), error=error)
        if not sittings:
            raise next(each.error for each in outcomes.values() if each.error is not None)
        open_ = [sitting for sitting in sittings.values() if not sitting.is_over]
        if open_:
            _drive(open_, resume=resume, on_target=on_target, warn=warn)
        for number, sitting in sittings.items():
            outcomes[number] = outcome_of(sitting)
    return [outcomes[number] for number in range(len(jobs))]


def _drive(
    sittings: list[Sitting],
    *,
    resume: str,
    on_target: Callable[[Target], None] | None,
    warn: Callable[[str], None],
) -> None:
    configs = [sitting.job.config for sitting in sittings]
    groups = [[sittings[number] for number in group] for group in by_protocol(configs)]
    drawn = secrets.randbits(63)
    for sitting in sittings:
        write_job_manifest(sitting.job, secret=sitting.secret(drawn), earlier=sitting.manifest)
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
        if cluster.devices_here < cluster.devices:
            warn(
                f"cluster.devices={cluster.devices}, and {cluster.devices_here} are there: the "
                "others are used when their nodes join"
            )
        if cluster.other_gpus:
            warn(
                f"the cluster's GPUs differ: candidates are timed on {cluster.gpu_kind}, so that "
                f"one problem is timed on one kind; {cluster.other_gpus} of other kinds stay idle"
            )
        fleet = FleetLoop(cluster, configs, drawn=drawn, on_target=on_target, warn=warn)
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


def _allow_files(wanted: int) -> None:
    """Raise this process's bound on open files as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted + soft, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
