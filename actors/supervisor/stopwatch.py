"""Timing one child's module: blocks of calls, by its device's clock and by ours.

The child's figure is what is reported. It is believed where three things hold: the supervisor's
own slope (wall time of many calls against few) agrees with the child's on the same calls; what the
child says passed between the calls is what passes there for the reference; and in the blocks that
count, our clock sees no more pass beside the child's calls than beside the reference's.

A busy host disturbs either clock, so a disagreement counts only where it stays on every attempt,
each with more work than the last; a clock that lies goes on lying.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

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
BESIDE_FACTOR = 1.5
"""Beside the calls of a block may pass what passes beside the reference's times this."""
SLOPE_REPEATS = 3
SLOPE_S = (0.01, 0.05, 0.25)
"""Work that separates many calls from few, on the first attempt and the next."""
MAX_SLOPE_CALLS = 20_000
DAY_US = 86_400_000_000.0
CLOCK_FLOOR_US = 2.0
"""Least wall time that separates many calls from few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCall:
    """What the last timed call was given: its output may be verified."""

    number: int
    """Input set."""
    perturbation: Perturbation | None
    """How its content differed from what was drawn."""
    seed: int
    """Set before it, for modules that draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Microseconds of one call by each clock."""

    call_us: float
    """The child's, of the call alone."""
    gap_us: float
    """The child's, of what passed between two calls."""
    child_us: float
    """The child's, of a call with the gap, as the slope of many calls over few."""
    slope_us: float
    """The supervisor's, of the same calls."""


class Block(NamedTuple):
    """Microseconds of one call, from one block of them."""

    call_us: float
    """By the child's clock."""
    beside_us: float
    """By ours: what passed beside the calls, the command that ordered the block included."""


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
        self.last = LastCall(number=min(sets), perturbation=None, seed=0)

    def warm_up(self) -> None:
        """Run until clocks and caches are settled, and choose the size of a block by our clock.

        Raises:
            ChildFailed: the module raises, dies or hangs.
        """
        began_s = time.monotonic()
        call_us = self._wall_us(WARM_UP_CALLS)[0] / WARM_UP_CALLS
        while time.monotonic() - began_s < WARM_UP_S:
            call_us = self._wall_us(self._fitting(call_us))[0] / self._calls
        self._fitting(call_us)

    def block(self) -> Block:
        """Time one block of calls.

        CPU: the mean of its calls. CUDA: the median of cold calls.

        Raises:
            ChildFailed: the module raises, dies or hangs, or its clock is no clock.
        """
        began_ns = time.perf_counter_ns()
        calls_us, _ = self._time(self._calls)
        wall_us = (time.perf_counter_ns() - began_ns) / 1e3
        return Block(
            call_us=statistics.median(calls_us),
            beside_us=wall_us / self._calls - statistics.fmean(calls_us),
        )

    def clocks(self, *, work_s: float = SLOPE_S[0]) -> Clocks:
        """Return what each clock says, of calls made as blocks make them.

        Args:
            work_s: about the time that many calls take beyond few.

        Raises:
            ChildFailed: as `block`.
        """
        wall_us, _, _ = self._wall_us(self._calls)  # theirs might make it hours
        call_us = max(wall_us / self._calls, 0.05)
        extra = min(max(self._calls, math.ceil(work_s * 1e6 / call_us)), MAX_SLOPE_CALLS)
        found = sorted(
            (self._slopes(extra) for _ in range(SLOPE_REPEATS)),
            key=lambda clocks: clocks.slope_us - clocks.child_us,
        )
        return found[len(found) // 2]

    def clocks_disagree(self, *, reference_gap_us: float) -> str | None:
        """Return what the clocks say where they disagree on every attempt; None where they agree.

        Raises:
            ChildFailed: as `block`.
        """
        why = None
        for work_s in SLOPE_S:
            why = self._disagreement(self.clocks(work_s=work_s), reference_gap_us)
            if why is None:
                return None
        return why

    def blocks_disagree(self, blocks: Sequence[Block], *, reference: Sequence[Block]) -> str | None:
        """Return what our clock says against the child's over the blocks of a race, or None.

        The clocks may have agreed when they were compared alone: what counts must agree too.

        Args:
            blocks: of this stopwatch, at least two.
            reference: of the baseline, interleaved with them.
        """
        mine_us = statistics.median(block.beside_us for block in blocks)
        # A busy host only adds: the lower quartile of the reference is nearer to its due.
        theirs_us = max(statistics.quantiles(block.beside_us for block in reference)[0], 0.0)
        call_us = statistics.median(block.call_us for block in blocks)
        if mine_us <= BESIDE_FACTOR * theirs_us + GAP_SHARE * call_us + GAP_FLOOR_US:
            return None
        return (
            f"{mine_us:.4g} us pass beside each of the candidate's timed calls, "
            f"{theirs_us:.4g} us beside the baseline's"
        )

    def _slopes(self, extra: int) -> Clocks:
        few = max(1, extra // 4)
        wall_few_us, _, total_few_us = self._wall_us(few)
        wall_many_us, call_us, total_many_us = self._wall_us(few + extra)
        return Clocks(
            call_us=call_us,
            gap_us=total_many_us / (few + extra) - call_us,
            child_us=slope_us(
                total_few_us, calls_few=few, wall_many_us=total_many_us, calls_many=few + extra
            ),
            slope_us=slope_us(
                wall_few_us, calls_few=few, wall_many_us=wall_many_us, calls_many=few + extra
            ),
        )

    def _disagreement(self, clocks: Clocks, reference_gap_us: float) -> str | None:
        if not clocks_agree(
            clocks.child_us,
            supervisor_us=clocks.slope_us,
            tolerance=self._timing.clock_tolerance,
            floor_us=CLOCK_FLOOR_US,
        ):
            return (
                f"the candidate's clock says {clocks.child_us:.4g} us a call, "
                f"the supervisor's {clocks.slope_us:.4g} us"
            )
        if clocks.gap_us > self._allowed_us(reference_gap_us, call_us=clocks.call_us):
            return (
                f"{clocks.gap_us:.4g} us pass between the candidate's calls, "
                f"{reference_gap_us:.4g} us between the reference's"
            )
        return None

    def _allowed_us(self, reference_us: float, *, call_us: float) -> float:
        return GAP_FACTOR[self._device] * reference_us + GAP_SHARE * call_us + GAP_FLOOR_US

    def _fitting(self, call_us: float) -> int:
        ceiling = MAX_CUDA_CALLS if self._device == "cuda" else MAX_CALLS
        wanted = math.ceil(self._timing.block_ms * 1e3 / max(call_us, 0.05))
        self._calls = max(1, min(wanted, ceiling))
        return self._calls

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
            number=last,
            perturbation=next(islice(draws, order.count(last) - 1, None)),
            seed=seed + calls - 1,
        )
        return _times(answer, expected=calls if self._device == "cuda" else 1)


def _times(answer: dict[str, object], *, expected: int) -> tuple[list[float], float]:
    """Return a child's times, which are untrusted: those of the calls, and the total.

    Raises:
        ChildFailed: they are not that many numbers above 0.
    """
    calls_us, total_us = answer.get("calls_us"), answer.get("total_us")
    if isinstance(calls_us, list) and len(calls_us) == expected:
        times_us = [_time_us(each) for each in (*calls_us, total_us)]
        if None not in times_us:
            *each_us, all_us = [each for each in times_us if each is not None]
            return each_us, all_us
    raise ChildFailed("raised", "clock", f"the clock gave no {expected} times above 0")


def _time_us(value: object) -> float | None:
    """A time above 0 and below a day; None for whatever else a child may send."""
    if isinstance(value, float | int) and not isinstance(value, bool) and 0 < value < DAY_US:
        return float(value)
    return None
