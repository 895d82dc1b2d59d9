"""Timing one child's module: blocks of calls, by its device's clock and by ours.

The child's figure is a claim. It is believed where two things hold: the supervisor's own slope
(wall time of many calls against few) agrees with the child's on the same calls; and in the blocks
that count, our clock sees no more pass beside the child's calls than beside those of the baseline,
which is timed between them. Even then no time is reported below what our clock supports
(kopt.overhead).

A busy host disturbs either clock, so a disagreement counts only where it stays on every attempt,
each with more work than the last; a clock that lies goes on lying.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kopt.actors.config import TimingConfig
from kopt.actors.devices.base import DeviceName, Pace
from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.made import Made
from kopt.actors.supervisor.told_times import told_times
from kopt.actors.supervisor.waiting import free_share, threads_waited_ns
from kopt.overhead import Block, beside_us, calm, overhead
from kopt.timing import clock_is_slow, slope_us

MAX_CALLS = 2_000
"""Calls of one block at most."""
MAX_CUDA_CALLS = 40
"""The same on a GPU, where each call is timed by itself, cold."""
KEPT_BYTES: dict[DeviceName, int] = {"cpu": 256 << 20, "cuda": 1 << 30}
"""Most that the outputs of one block may take, which its child keeps; on a GPU device memory."""
WARM_UP_CALLS = 3
WARM_UP_S = 0.2
"""Work before anything counts: clocks rise, caches of compiled kernels fill."""
GAP_SHARE = 0.1
GAP_FLOOR_US = 10.0
BESIDE_FACTOR: dict[DeviceName, float] = {"cpu": 1.5, "cuda": 1.25}
"""Beside each call of a block may pass what passes beside the baseline's times a factor (a constant
pause and flush on a GPU), a tenth of a call, and ten microseconds."""
CALM_SHARE = 0.3
"""Of the blocks, how many are no more disturbed than what is looked at."""
SLOPE_REPEATS = 3
SLOPE_S = (0.01, 0.05, 0.25)
"""Work that separates many calls from few, on the first attempt and the next."""
CLOCK_FLOOR_US = 2.0
"""Least wall time that separates many calls from few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Microseconds of one call by each clock."""

    child_us: float
    """The child's, of a call with the gap, as the slope of many calls over few."""
    slope_us: float
    """The supervisor's, of the same calls."""


class Stopwatch:
    """Times the module of one child on some of its input sets."""

    def __init__(
        self,
        child: Child,
        *,
        sets: dict[int, list[int]],
        output_bytes: int,
        copies: bool = False,
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
            output_bytes: of one call's outputs; a block keeps those of all its calls.
            copies: whether outputs may be views of inputs, of which a block keeps copies.
            device: kind of device, for the clock.
            timing: how long blocks are.
            limit_s: deadline of one block.
            rng: secret; decides the order and the contents.
        """
        self.child = child
        """Whose module is timed."""
        self._sets = sets
        self._output_bytes = output_bytes
        self._copies = copies
        self.device = device
        """Kind of device that it computes on."""
        self._timing = timing
        self._limit_s = limit_s
        self._rng = rng
        most = MAX_CUDA_CALLS if device == "cuda" else MAX_CALLS
        self._most_calls = max(1, min(most, KEPT_BYTES[device] // max(output_bytes, 1)))
        self._calls = 1
        self._least_us = math.inf
        self.last = Made(numbers=(), seed=0, calls=0, commitment="")
        """The last block that was run."""

    def on(self, sets: dict[int, list[int]]) -> Stopwatch:
        """Return a stopwatch of the same child on other input sets, whose blocks are its own."""
        return Stopwatch(
            self.child,
            sets=sets,
            output_bytes=self._output_bytes,
            copies=self._copies,
            device=self.device,
            timing=self._timing,
            limit_s=self._limit_s,
            rng=self._rng,
        )

    @property
    def sizes(self) -> dict[int, list[int]]:
        """Numbers of the input sets, with the number of elements of each tensor."""
        return self._sets

    @property
    def most_calls(self) -> int:
        """Calls of one block at most."""
        return self._most_calls

    @property
    def full(self) -> int:
        """Calls that fill a block."""
        return self._calls

    def warm_up(self) -> None:
        """Run until clocks and caches are settled, and choose the size of a block by our clock.

        Raises:
            ChildFailed: the module raises, dies or hangs.
        """
        began_s = time.monotonic()
        self._fit(self._run(min(WARM_UP_CALLS, self._most_calls)))
        while time.monotonic() - began_s < WARM_UP_S:
            self._fit(self._run(self._calls))

    def block(self, calls: int | None = None) -> Block:
        """Time one block of calls.

        CPU: the mean of its calls. CUDA: the median of cold calls.

        Args:
            calls: how many, `most_calls` at most; None for those that fill a block.

        Raises:
            ChildFailed: the module raises, dies or hangs, or its clock is no clock.
        """
        block = self._run(self._calls if calls is None else calls)
        self._fit(block)
        return block

    def calls(self, count: int, *, pace: Pace, clears: bool = True) -> Iterator[Block]:
        """Time so many calls each by itself, in as many blocks as their outputs ask for.

        Args:
            count: of calls.
            pace: of their launches.
            clears: whether the caches are evicted before each, where the device can; otherwise
                nobody tells the calls of a block apart.

        Raises:
            ChildFailed: as `block`.
        """
        while count > 0:
            some = min(count, self._most_calls)
            yield self._run(some, pace=pace, tells_apart=clears)
            count -= some

    def clocks(self, *, work_s: float = SLOPE_S[0]) -> Clocks:
        """Return what each clock says, of calls made as blocks make them.

        Args:
            work_s: about the time that many calls take beyond few.

        Raises:
            ChildFailed: as `block`.
        """
        wall_us = self._run(self._calls).wall_us  # theirs might make it hours
        call_us = max(wall_us / self._calls, 0.05)
        extra = max(self._calls, math.ceil(work_s * 1e6 / call_us))
        extra = max(1, min(extra, self._most_calls * 4 // 5))
        found = sorted(
            (self._slopes(extra) for _ in range(SLOPE_REPEATS)),
            key=lambda clocks: clocks.slope_us - clocks.child_us,
        )
        return found[len(found) // 2]

    def clocks_disagree(self) -> str | None:
        """Return what the clocks say where they disagree on every attempt; None where they agree.

        Raises:
            ChildFailed: as `block`.
        """
        why = None
        for work_s in SLOPE_S:
            why = self._disagreement(self.clocks(work_s=work_s))
            if why is None:
                return None
        return why

    def blocks_disagree(self, blocks: Sequence[Block], *, reference: Sequence[Block]) -> str | None:
        """Return what our clock says against the child's over the blocks of a race, or None.

        The clocks may have agreed when they were compared alone: what counts must agree too. A busy
        host only adds, so calm blocks of both are compared; lies in a few blocks alone are found by
        none, and do not pay (kopt.overhead).

        Args:
            blocks: of this stopwatch, at least one.
            reference: of the baseline, between these.
        """
        mine = calm(blocks, share=CALM_SHARE)
        theirs_us = overhead(reference, share=CALM_SHARE).beside_us(mine.calls)
        allowed_us = BESIDE_FACTOR[self.device] * theirs_us
        if beside_us(mine) <= allowed_us + GAP_SHARE * mine.call_us + GAP_FLOOR_US:
            return None
        return (
            f"{beside_us(mine):.4g} us pass beside each of the candidate's timed calls, "
            f"{theirs_us:.4g} us beside the baseline's"
        )

    def _slopes(self, extra: int) -> Clocks:
        few = max(1, extra // 4)
        short, long = self._run(few), self._run(few + extra)
        return Clocks(
            child_us=slope_us(
                short.total_us,
                calls_few=short.calls,
                wall_many_us=long.total_us,
                calls_many=long.calls,
            ),
            slope_us=slope_us(
                short.wall_us,
                calls_few=short.calls,
                wall_many_us=long.wall_us,
                calls_many=long.calls,
            ),
        )

    def _disagreement(self, clocks: Clocks) -> str | None:
        if not clock_is_slow(
            clocks.child_us,
            supervisor_us=clocks.slope_us,
            tolerance=self._timing.clock_tolerance,
            floor_us=CLOCK_FLOOR_US,
        ):
            return None
        return (
            f"the candidate's clock says {clocks.child_us:.4g} us a call, "
            f"the supervisor's {clocks.slope_us:.4g} us"
        )

    def _fit(self, block: Block) -> None:
        """Choose how many calls fill a block, by the quickest that was seen.

        A busy host only adds. A block whose size was chosen while it did has too few calls for
        ever, and each of them is slower than one among many: what is compared must be alike.
        """
        self._least_us = min(self._least_us, max(block.wall_us / block.calls, 0.05))
        wanted = math.ceil(self._timing.block_ms * 1e3 / self._least_us)
        self._calls = max(1, min(wanted, self._most_calls))

    def _run(self, calls: int, *, pace: Pace = "ahead", tells_apart: bool | None = None) -> Block:
        """Run a block of so many calls; its input content is known to nobody before."""
        if tells_apart is None:
            tells_apart = self.device == "cuda"
        numbers = sorted(self._sets)
        seed = self._rng.getrandbits(32)
        waited_ns = self._waited_ns()
        began_ns = time.perf_counter_ns()
        answer = self.child.ask(
            "time",
            timeout_s=self._limit_s,
            numbers=numbers,
            count=calls,
            seed=seed,
            flush=tells_apart,
            pace=pace,
            copies=self._copies,
        )
        wall_us = (time.perf_counter_ns() - began_ns) / 1e3
        share = free_share(waited_ns, self._waited_ns(), wall_us=wall_us)
        self.last = Made(
            numbers=tuple(numbers),
            seed=seed,
            calls=calls,
            commitment=str(answer.get("commitment", ""))[:64],
        )
        calls_us, total_us = told_times(answer, expected=calls if tells_apart else 1)
        return Block(
            calls=calls,
            wall_us=wall_us,
            call_us=statistics.median(calls_us),
            busy_us=statistics.fmean(calls_us) * calls,
            total_us=total_us,
            calls_us=tuple(calls_us) if tells_apart else (),
            free_share=share,
        )

    def _waited_ns(self) -> dict[int, int]:
        """What threads of the child waited for a processor; a GPU's calls are timed by the GPU."""
        return threads_waited_ns(self.child) if self.device == "cpu" else {}
