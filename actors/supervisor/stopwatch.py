"""Timing one child's module: blocks of calls, by its device's clock and by ours.

The child's figure is what is reported; the supervisor's own slope (wall time of many calls against
few) must agree with it, or it is not believed.
"""

from __future__ import annotations

import math
import random
import statistics
import time

from kopt.actors.config import TimingConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.timing import clocks_agree, slope_us

MAX_CALLS = 2_000
"""Calls of one block at most."""
MAX_CUDA_CALLS = 40
"""The same on a GPU, where each call is timed by itself, cold."""
WARM_UP_CALLS = 3
WARM_UP_S = 0.2
"""Work before anything counts: clocks rise, caches of compiled kernels fill."""
SLOPE_REPEATS = 3
SLOPE_S = 0.01
"""Least wall time that separates many calls from few."""


class Stopwatch:
    """Times the module of one child on some of its input sets."""

    def __init__(
        self,
        child: Child,
        *,
        sets: list[int],
        device: DeviceName,
        timing: TimingConfig,
        limit_s: float,
        rng: random.Random,
    ) -> None:
        """Take a child whose module has run once.

        Args:
            child: with the input sets bound.
            sets: their numbers; each block runs them in an order drawn from rng.
            device: kind of device, for the clock.
            timing: how long blocks are.
            limit_s: deadline of one block.
            rng: secret; decides the order and the last call, whose output may be verified.
        """
        self._child = child
        self._sets = sets
        self._device = device
        self._timing = timing
        self._limit_s = limit_s
        self._rng = rng
        self._calls = 1
        self.last_set = sets[0]
        """Input set of the last timed call."""

    def warm_up(self) -> None:
        """Run until clocks and caches are settled, and choose the size of a block.

        Raises:
            ChildFailed: the module raises, dies or hangs.
        """
        began_s = time.monotonic()
        call_us = self._total_us(WARM_UP_CALLS) / WARM_UP_CALLS
        while time.monotonic() - began_s < WARM_UP_S:
            call_us = self._total_us(self._fitting(call_us)) / self._calls
        self._fitting(call_us)

    def block_us(self) -> float:
        """Return the time of one call by the child's clock, from one block.

        CPU: the mean of a block. CUDA: the median of cold calls.

        Raises:
            ChildFailed: the module raises, dies or hangs, or its clock is no clock.
        """
        flush = self._device == "cuda"
        times_us = self._time(self._calls, flush=flush)
        if flush:
            return statistics.median(times_us)
        return times_us[0] / self._calls

    def clocks(self) -> tuple[float, float]:
        """Return microseconds of one warm call by (the child's clock, the supervisor's slope).

        Raises:
            ChildFailed: as `block_us`.
        """
        call_us = max(self._total_us(self._calls) / self._calls, 0.05)
        extra = max(self._calls, math.ceil(SLOPE_S * 1e6 / call_us))
        few = max(1, extra // 4)
        extra = min(extra, 20_000)
        slopes, clocks = [], []
        for _ in range(SLOPE_REPEATS):
            wall_few, _ = self._wall_us(few)
            wall_many, child_many = self._wall_us(few + extra)
            slopes.append(
                slope_us(wall_few, calls_few=few, wall_many_us=wall_many, calls_many=few + extra)
            )
            clocks.append(child_many / (few + extra))
        return statistics.median(clocks), statistics.median(slopes)

    def clocks_disagree(self) -> str | None:
        """Return what the two clocks say where they disagree, twice; None where they agree.

        Raises:
            ChildFailed: as `block_us`.
        """
        for _ in range(2):
            child_us, own_us = self.clocks()
            if clocks_agree(child_us, supervisor_us=own_us, tolerance=self._timing.clock_tolerance):
                return None
        return f"the candidate's clock says {child_us:.4g} us a call, the supervisor's {own_us:.4g}"

    def _fitting(self, call_us: float) -> int:
        ceiling = MAX_CUDA_CALLS if self._device == "cuda" else MAX_CALLS
        wanted = math.ceil(self._timing.block_ms * 1e3 / max(call_us, 0.05))
        self._calls = max(1, min(wanted, ceiling))
        return self._calls

    def _total_us(self, calls: int) -> float:
        return self._time(calls, flush=False)[0]

    def _wall_us(self, calls: int) -> tuple[float, float]:
        began_ns = time.perf_counter_ns()
        child_us = self._total_us(calls)
        return (time.perf_counter_ns() - began_ns) / 1e3, child_us

    def _time(self, calls: int, *, flush: bool) -> list[float]:
        order = [self._rng.choice(self._sets) for _ in range(calls)]
        answer = self._child.ask("time", timeout_s=self._limit_s, order=order, flush=flush)
        self.last_set = order[-1]
        return _times(answer, expected=calls if flush else 1)


def _times(answer: dict[str, object], *, expected: int) -> list[float]:
    """Return a child's times, which are untrusted.

    Raises:
        ChildFailed: they are not that many numbers above 0.
    """
    times = answer.get("times_us")
    if (
        isinstance(times, list)
        and len(times) == expected
        and all(isinstance(each, float | int) and 0.0 < each < math.inf for each in times)
    ):
        return [float(each) for each in times]
    raise ChildFailed("died", "timing", f"spoke out of turn: no {expected} times above 0")
