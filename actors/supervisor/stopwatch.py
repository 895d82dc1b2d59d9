"""Timing one child's module: blocks of calls, by its device's clock and by ours.

The child's figure is what is reported. It is believed where two things hold: the supervisor's own
slope (wall time of many calls against few) agrees with the child's total, and what the child says
passed between the calls is what passes there for the reference.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from dataclasses import dataclass
from itertools import islice

from kopt.actors.child.perturb import Perturbation, perturbations
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
GAP_FACTOR: dict[DeviceName, float] = {"cpu": 2.0, "cuda": 1.25}
GAP_SHARE = 0.1
GAP_FLOOR_US = 10.0
"""Between two calls may pass the reference's gap (some microseconds on a CPU, a constant pause and
flush on a GPU) times a factor, a tenth of a call, and ten microseconds."""
SLOPE_REPEATS = 3
SLOPE_S = 0.01
MAX_SLOPE_CALLS = 20_000
CLOCK_FLOOR_US = 2.0
"""Least wall time that separates many calls from few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCall:
    """What the last timed call was given: its output may be verified."""

    number: int
    """Input set."""
    perturbation: Perturbation | None
    """How its content differed from what was drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Microseconds of one call by each clock."""

    call_us: float
    """The child's, of the call alone."""
    gap_us: float
    """The child's, of what passed between two calls."""
    slope_us: float
    """The supervisor's, of a call with the gap."""


class Stopwatch:
    """Times the module of one child on some of its input sets."""

    def __init__(
        self,
        child: Child,
        *,
        sets: dict[int, list[int]],
        device: DeviceName,
        timing: TimingConfig,
        limit_s: float,
        rng: random.Random,
    ) -> None:
        """Take a child whose module has run once.

        Args:
            child: with the input sets bound.
            sets: their numbers, with the number of elements of each tensor; a block runs them in
                an order drawn from rng.
            device: kind of device, for the clock.
            timing: how long blocks are.
            limit_s: deadline of one block.
            rng: secret; decides the order, the contents, and with them the last call.
        """
        self._child = child
        self._sets = sets
        self._device = device
        self._timing = timing
        self._limit_s = limit_s
        self._rng = rng
        self._calls = 1
        self.last = LastCall(number=min(sets), perturbation=None)

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
        calls_us, _ = self._time(self._calls)
        return statistics.median(calls_us)

    def clocks(self) -> Clocks:
        """Return what each clock says, of calls made as blocks make them.

        Raises:
            ChildFailed: as `block_us`.
        """
        call_us = max(self._total_us(self._calls) / self._calls, 0.05)
        extra = min(max(self._calls, math.ceil(SLOPE_S * 1e6 / call_us)), MAX_SLOPE_CALLS)
        few = max(1, extra // 4)
        slopes, calls, totals = [], [], []
        for _ in range(SLOPE_REPEATS):
            wall_few_us, _, _ = self._wall_us(few)
            wall_many_us, many_us, total_us = self._wall_us(few + extra)
            slopes.append(
                slope_us(
                    wall_few_us,
                    calls_few=few,
                    wall_many_us=wall_many_us,
                    calls_many=few + extra,
                )
            )
            calls.append(many_us)
            totals.append(total_us / (few + extra))
        call_us = statistics.median(calls)
        return Clocks(
            call_us=call_us,
            gap_us=statistics.median(totals) - call_us,
            slope_us=statistics.median(slopes),
        )

    def clocks_disagree(self, *, reference_gap_us: float) -> str | None:
        """Return what the clocks say where they disagree, twice; None where they agree.

        Raises:
            ChildFailed: as `block_us`.
        """
        why = None
        for _ in range(2):
            why = self._disagreement(self.clocks(), reference_gap_us)
            if why is None:
                return None
        return why

    def _disagreement(self, clocks: Clocks, reference_gap_us: float) -> str | None:
        child_us = clocks.call_us + clocks.gap_us
        if not clocks_agree(
            child_us,
            supervisor_us=clocks.slope_us,
            tolerance=self._timing.clock_tolerance,
            floor_us=CLOCK_FLOOR_US,
        ):
            return (
                f"the candidate's clock says {child_us:.4g} us a call, "
                f"the supervisor's {clocks.slope_us:.4g} us"
            )
        factor = GAP_FACTOR[self._device]
        allowed_us = factor * reference_gap_us + GAP_SHARE * clocks.call_us + GAP_FLOOR_US
        if clocks.gap_us > allowed_us:
            return (
                f"{clocks.gap_us:.4g} us pass between the candidate's calls, "
                f"{reference_gap_us:.4g} us between the reference's"
            )
        return None

    def _fitting(self, call_us: float) -> int:
        ceiling = MAX_CUDA_CALLS if self._device == "cuda" else MAX_CALLS
        wanted = math.ceil(self._timing.block_ms * 1e3 / max(call_us, 0.05))
        self._calls = max(1, min(wanted, ceiling))
        return self._calls

    def _total_us(self, calls: int) -> float:
        _, total_us = self._time(calls)
        return total_us

    def _wall_us(self, calls: int) -> tuple[float, float, float]:
        """Microseconds: of all calls by our clock; of one, and of all, by the child's."""
        began_ns = time.perf_counter_ns()
        calls_us, total_us = self._time(calls)
        return (time.perf_counter_ns() - began_ns) / 1e3, statistics.fmean(calls_us), total_us

    def _time(self, calls: int) -> tuple[list[float], float]:
        """Run some calls: microseconds of each (CPU: their mean), and in total."""
        numbers = sorted(self._sets)
        order = [self._rng.choice(numbers) for _ in range(calls)]
        seed = self._rng.getrandbits(32)
        answer = self._child.ask(
            "time",
            timeout_s=self._limit_s,
            order=order,
            seed=seed,
            flush=self._device == "cuda",
        )
        last = order[-1]
        draws = perturbations(self._sets[last], seed=seed + last)
        self.last = LastCall(
            number=last, perturbation=next(islice(draws, order.count(last) - 1, None))
        )
        return _times(answer, expected=calls if self._device == "cuda" else 1)


def _times(answer: dict[str, object], *, expected: int) -> tuple[list[float], float]:
    """Return a child's times, which are untrusted: those of the calls, and the total.

    Raises:
        ChildFailed: they are not that many numbers above 0.
    """
    calls_us, total_us = answer.get("calls_us"), answer.get("total_us")
    if (
        isinstance(calls_us, list)
        and len(calls_us) == expected
        and all(_is_time(each) for each in (*calls_us, total_us))
    ):
        return [float(each) for each in calls_us], float(str(total_us))
    raise ChildFailed("raised", "clock", f"the clock gave no {expected} times above 0")


def _is_time(value: object) -> bool:
    return isinstance(value, float | int) and 0.0 < value < math.inf
