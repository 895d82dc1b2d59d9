"""kopt's side of bench_throughput.py: the evaluator that `kopt run` uses, as many calls under way.

Cold has an empty cache folder and new workers; warm goes through the same candidates again, with
the builds and baselines in place and new workers. Verdicts are never cached here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench_throughput_candidates import Mixed
from bench_throughput_processor import tree_cpu_s
from bench_throughput_record import device_record

from kopt.actors.build.toolchain import provide_toolchain
from kopt.actors.cluster import Cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.pool import RayEvaluator
from kopt.actors.quiet import Quiet
from kopt.evaluation import Evaluation

SETTLE_S = 120.0
"""Longest that calls under way are waited for once the time is over."""


@dataclass(slots=True, kw_only=True)
class Phase:
    """What came of judging candidates for some time."""

    devices: int = 1
    wall_s: float = 0.0
    """From the first call to the last answer."""
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    """By candidate id."""
    whole_s: dict[str, float] = field(default_factory=dict)
    """By candidate id: from each call to its answer, waits included."""
    lost: list[str] = field(default_factory=list)
    """Calls without an answer: label and reason."""
    cpu_s: float = 0.0
    """Processor seconds of all processes, while it went on."""
    device_busy: float | None = None
    """Share of the time while candidates waited in which the device ran a kernel, by its driver's
    own record; None where there is none."""

    @property
    def cpu_each_s(self) -> float:
        """Processor seconds of a candidate, in the mean; 0 before any."""
        return self.cpu_s / len(self.evaluations) if self.evaluations else 0.0

    @property
    def per_hour(self) -> float:
        """Candidates judged in an hour of one device at this rate."""
        device_s = self.wall_s * self.devices
        return 3600.0 * len(self.evaluations) / device_s if device_s else 0.0

    def stages_s(self) -> dict[str, float]:
        """Return the mean seconds of each stage, over all candidates."""
        timelines = [each.timeline_s for each in self.evaluations.values()]
        names = dict.fromkeys(name for timeline in timelines for name in timeline)
        count = max(1, len(timelines))
        return {name: sum(each.get(name, 0.0) for each in timelines) / count for name in names}

    def on_device(self) -> float:
        """Return how many candidates a device had at a time, in the mean; waits are left out."""
        return self._share(lambda name: not (name.endswith("queued") or name == "built"))

    def timed_share(self) -> float:
        """Return the share of the wall time in which a candidate was being timed."""
        return self._share(lambda name: name == "timed")

    def _share(self, counts: Callable[[str], bool]) -> float:
        seconds = sum(
            value
            for each in self.evaluations.values()
            for name, value in each.timeline_s.items()
            if counts(name)
        )
        return seconds / (self.wall_s * self.devices) if self.wall_s else 0.0


def set_up(cache_dir: Path) -> float:
    """Make the toolchain that a node makes once; return the seconds it took."""
    began_s = time.monotonic()
    provide_toolchain(cache_dir)
    return time.monotonic() - began_s


async def judge(
    candidates: list[Mixed],
    *,
    cluster: Cluster,
    evaluate: EvaluateConfig,
    cache_dir: Path,
    limit_s: float,
) -> Phase:
    """Judge candidates in order, a few under way at once, until all are or the time is over.

    Candidates that were not begun in time are left out of the phase.
    """
    config = ClusterConfig(devices=cluster.devices, build_workers=cluster.build_workers)
    evaluator = RayEvaluator(
        cluster,
        config=config,
        evaluate=evaluate,
        cache_dir=cache_dir,
        quiet=Quiet(cluster.device),
    )
    await evaluator.target()
    phase = Phase(devices=cluster.devices)
    waited_until_s: float | None = None
    queue = iter(candidates)
    began_s, began_cpu_s = time.monotonic(), tree_cpu_s()

    async def worker() -> None:
        nonlocal waited_until_s
        for mixed in queue:
            asked_s = time.monotonic()
            if asked_s - began_s > limit_s:
                break
            try:
                evaluation = await asyncio.wait_for(
                    evaluator.evaluate(mixed.problem, mixed.candidate), limit_s + SETTLE_S
                )
            except Exception as error:  # noqa: BLE001 - the report names it; the others go on
                phase.lost.append(f"{mixed.label}: {type(error).__name__}: {error}")
                continue
            phase.evaluations[mixed.candidate.candidate_id] = evaluation
            phase.whole_s[mixed.candidate.candidate_id] = time.monotonic() - asked_s
            phase.wall_s = time.monotonic() - began_s
        waited_until_s = waited_until_s or time.monotonic()

    with device_record(cluster.device, num_devices=cluster.devices) as record:
        await asyncio.gather(*(worker() for _ in range(in_flight(cluster))))
    phase.cpu_s = tree_cpu_s() - began_cpu_s
    phase.device_busy = record.share(until_s=waited_until_s)
    evaluator.close()
    return phase


def in_flight(cluster: Cluster) -> int:
    """Return how many calls keep every lane at work.

    The driver has as many expansions under way as there are build workers, and two for each device
    (`kopt.cli.fleet.pace`); an expansion is two candidates by default.
    """
    return 2 * (2 * cluster.devices + cluster.build_workers)
