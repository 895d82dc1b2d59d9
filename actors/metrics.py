"""What lanes say of themselves to Ray's metrics: verdicts, seconds by stage, who waits, who works.

Ray exports them (Prometheus, by each node's agent); a cluster without an exporter drops them. Of
`kopt_device_lane_share` a GPU's own activity is not the measure: it is the share of time for which
something had a turn on the device (`Turns.busy_s`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ray.util.metrics import Counter, Gauge, Histogram

from kopt.evaluation import Evaluation
from kopt.lane import LaneLoad

STAGE_BOUNDS_S = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 180.0]
HOUR_S = 3600.0
LANES_EVERY_S = 1.0
"""Between two looks at the lanes: verdicts come by the hundred a second on a large cluster, and
Ray exports what it has every few seconds."""


class DeviceMetrics:
    """Of one device's actor."""

    def __init__(self, *, number: int, device: str) -> None:
        """Begin to count.

        Args:
            number: of the device worker.
            device: its kind.
        """
        tags = {"device": device, "worker": str(number)}
        self._began_s = time.monotonic()
        self._num_judged = 0
        self._verdicts = Counter(
            "kopt_candidates_total",
            description="Candidates that were judged on a device, by verdict.",
            tag_keys=("device", "worker", "kind"),
        )
        self._verdicts.set_default_tags(tags)
        self._rate = Gauge(
            "kopt_candidates_per_gpu_hour",
            description="Candidates judged on a device, to the hour since its worker started.",
            tag_keys=("device", "worker"),
        )
        self._rate.set_default_tags(tags)
        self._share = Gauge(
            "kopt_device_lane_share",
            description="Share of time for which something had a turn on the device, 0 to 1.",
            tag_keys=("device", "worker"),
        )
        self._share.set_default_tags(tags)

    def judged(self, evaluation: Evaluation, *, busy_s: float) -> None:
        """Count a verdict.

        Args:
            evaluation: that was reached.
            busy_s: seconds so far for which something had a turn on the device.
        """
        self._num_judged += 1
        passed_s = max(time.monotonic() - self._began_s, 1e-9)
        self._verdicts.inc(tags={"kind": evaluation.verdict.kind})
        self._rate.set(self._num_judged / passed_s * HOUR_S)
        self._share.set(min(busy_s / passed_s, 1.0))


class LaneMetrics:
    """Of the lanes, as whoever lends their actors sees them."""

    def __init__(self) -> None:
        """Begin to count."""
        self._next_s = 0.0
        self._stages = Histogram(
            "kopt_stage_seconds",
            description="Seconds of a candidate in a stage, waits included under their names.",
            boundaries=STAGE_BOUNDS_S,
            tag_keys=("stage",),
        )
        self._occupancy = Gauge(
            "kopt_lane_occupancy",
            description="Share of a lane's places that are taken, 0 to 1.",
            tag_keys=("lane",),
        )
        self._waiting = Gauge(
            "kopt_lane_waiting",
            description="Candidates that wait for a place on a lane.",
            tag_keys=("lane",),
        )

    def told(self, evaluation: Evaluation, *, lanes: Callable[[], list[LaneLoad]]) -> None:
        """Take a candidate's seconds by stage, and now and then how full the lanes are.

        Args:
            evaluation: that was reached.
            lanes: tells how full they are now.
        """
        for stage, seconds in evaluation.timeline_s.items():
            self._stages.observe(seconds, tags={"stage": stage})
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + LANES_EVERY_S
        for load in lanes():
            self._occupancy.set(load.num_calls / load.num_places, tags={"lane": load.name})
            self._waiting.set(load.num_waiting, tags={"lane": load.name})
