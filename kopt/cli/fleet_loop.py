"""The jobs of a fleet in one event loop: what they share, and a driver for each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from kopt.actors.cluster import Cluster
from kopt.actors.quiet import Quiet
from kopt.actors.terms import terms_of
from kopt.cli.crew import Crew, assemble
from kopt.cli.fleet_site import AHEAD_PER_DEVICE, Site, most_per_search, places
from kopt.cli.job import ObservedSink, spent, write_job_manifest
from kopt.cli.joining import joining_followed
from kopt.cli.lane_report import EVERY_S, lanes_reported
from kopt.cli.sitting import Sitting
from kopt.clock import SystemClock
from kopt.config import RunConfig
from kopt.data.fold import verdict_cache
from kopt.device_health import Quarantine
from kopt.driver.limits import Limits, Spent
from kopt.driver.loop import Driver, Pace
from kopt.driver.stops import StopRule
from kopt.driver.table import Table
from kopt.driver.turns import Turns
from kopt.driver.verdicts import SharedVerdicts
from kopt.errors import KoptError, StoreError
from kopt.evaluation import from_json
from kopt.events import DeviceQuarantined
from kopt.ports import Target

WATCHED_JOBS = 32
"""Jobs whose `lanes.json` is written once a second; with more of them, each less often."""

_LOG = logging.getLogger(__name__)


class FleetLoop:
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
        """Take the fleet over.

        Args:
            cluster: that is up.
            configs: of all jobs.
            drawn: seed of hidden inputs, for jobs that set none.
            on_target: called once the device is known.
            warn: shows one line to the user.
        """
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

    async def run(self, groups: Sequence[Sequence[Sitting]]) -> None:
        """Run groups of jobs that judge alike, one after the other."""
        quiet = Quiet(self._cluster.device)
        for group in groups:
            site = Site(
                self._cluster,
                [sitting.job for sitting in group],
                secret=group[0].secret(self._drawn),
                quiet=quiet,
                warn=self._warn,
                on_quarantine=partial(self._quarantined, group),
            )
            every_s = EVERY_S * max(1.0, len(group) / WATCHED_JOBS)
            turns = [asyncio.Event() for _ in range(len(group) + 1)]
            turns[0].set()
            try:
                async with joining_followed(
                    self._cluster.devices_now, partial(self._grown, site, group)
                ):
                    ends = await asyncio.gather(
                        *(
                            self._run(sitting, site, every_s=every_s, turn=turn, next_turn=then)
                            for sitting, turn, then in zip(group, turns, turns[1:], strict=False)
                        ),
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

    def _grown(self, site: Site, group: Sequence[Sitting], more: int) -> None:
        """Use devices that have joined; there is more to do at once, unless they were planned."""
        self._warn(f"{more} device(s) have joined the cluster")
        site.grow(more)
        if group[0].job.config.cluster.devices is None:
            self._turns.grow(AHEAD_PER_DEVICE * more)

    def _quarantined(self, group: Sequence[Sitting], quarantine: Quarantine) -> None:
        """Say that a device is given up, here and in the journal of every job that goes on."""
        self._warn(str(quarantine))
        event = DeviceQuarantined(
            device=quarantine.device,
            device_name=quarantine.name,
            host=quarantine.host,
            reason=quarantine.reason,
        )
        for sitting in group:
            if sitting.sink is None:
                continue
            try:
                sitting.sink.append("", event)
            except StoreError as error:  # its driver hears of it with its own next event
                _LOG.warning("%s: %s", sitting.job.run_dir.path, error)

    async def _run(
        self,
        sitting: Sitting,
        site: Site,
        *,
        every_s: float,
        turn: asyncio.Event,
        next_turn: asyncio.Event,
    ) -> None:
        """Run one job to its end.

        Jobs ask first in their own order, whoever was ready first: arms that sweep the same
        problems then begin with the same one, and a device makes it ready once.

        Raises:
            KoptError: it cannot go on.
        """
        try:
            crew = await self._crew(sitting, site)
        except BaseException:
            next_turn.set()
            raise
        try:
            try:
                await turn.wait()
            finally:
                next_turn.set()
            await self._drive(sitting, site, crew, every_s=every_s)
        finally:
            if crew.staff is not None:
                crew.staff.say_figures()
            await site.close_own(crew.programmer, sitting.job.config.programmer)

    async def _drive(self, sitting: Sitting, site: Site, crew: Crew, *, every_s: float) -> None:
        job = sitting.job
        if self._on_target is not None:
            self._on_target(crew.target)
            self._on_target = None
        write_job_manifest(
            job,
            secret=sitting.secret(self._drawn),
            earlier=sitting.manifest,
            device=crew.device,
        )
        driver = self._driver(sitting, site, crew)
        sitting.forget()
        async with lanes_reported(job.run_dir.path, site.lanes, clock=self._clock, every_s=every_s):
            try:
                await driver.run()
            finally:
                sitting.sink = None
        sitting.awaiting = driver.awaiting

    async def _crew(self, sitting: Sitting, site: Site) -> Crew:
        job = sitting.job
        return await assemble(
            job.config,
            sitting.tasks,
            earlier=sitting.earlier,
            run=job.run_dir,
            workplace=site.workplace(job),
            judge=site.judge,
            make_profiler=partial(
                site.profiler, with_rules=job.config.findings.feedback == "rules"
            ),
            make_programmer=site.programmer,
        )

    def _driver(self, sitting: Sitting, site: Site, crew: Crew) -> Driver:
        config = sitting.job.config
        known = {key: from_json(record) for key, record in verdict_cache(sitting.earlier).items()}
        sitting.sink = ObservedSink(sitting.journal, sitting.job.observer)
        return Driver(
            sitting.tasks,
            programmer=crew.programmer,
            staff=crew.staff,
            evaluator=crew.evaluator,
            sink=sitting.sink,
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
            terms=terms_of(site.evaluate),
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
