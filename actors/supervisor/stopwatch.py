"""Timing one child's module: blocks of calls, by its device's clock and by ours.

Whether the child's clock is believed, two_clocks.py says. On a GPU a block is queued, and released
by us (gate.py); how many calls are queued whole is found when the module is warmed up
(kopt.queue_depth).
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator
from typing import Any

from kopt.actors.config import TimingConfig
from kopt.actors.devices.base import DeviceName, Pace
from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.actors.supervisor.gate import Release
from kopt.actors.supervisor.made import Made
from kopt.actors.supervisor.told_times import told_times
from kopt.actors.supervisor.waiting import free_share, threads_waited_ns
from kopt.overhead import Block
from kopt.queue_depth import MOST_CALLS, QueueDepth

MAX_CALLS = 2_000
"""Calls of one block at most, on a CPU."""
KEPT_BYTES: dict[DeviceName, int] = {"cpu": 256 << 20, "cuda": 1 << 30}
"""Most that the outputs of one block may take, which its child keeps; on a GPU device memory."""
WARM_UP_CALLS = 3
WARM_UP_S = 0.2
"""Work before anything counts: clocks rise, caches of compiled kernels fill."""
QUEUE_S, VAIN_QUEUE_S = 0.02, 0.004
"""After which a block is released though it is not queued whole: launching as much as a queue holds
takes a busy host no longer. Where not even one call is, what is there soon is all there will be."""


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
        depth: QueueDepth | None = None,
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
            depth: of its blocks on a GPU; None: not known yet.
        """
        self.child = child
        """Whose module is timed."""
        self._sets = sets
        self._output_bytes = output_bytes
        self._copies = copies
        self.device = device
        """Kind of device that it computes on."""
        self.depth = depth or QueueDepth()
        """Of its blocks on a GPU."""
        self._timing = timing
        self._limit_s = limit_s
        self._rng = rng
        most = MOST_CALLS if device == "cuda" else MAX_CALLS
        self._most_calls = max(1, min(most, KEPT_BYTES[device] // max(output_bytes, 1)))
        self._calls = 1
        self._least_us = math.inf
        self.last = Made(numbers=(), seed=0, calls=0, commitment="", last=0)
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
            depth=self.depth,
        )

    @property
    def sizes(self) -> dict[int, list[int]]:
        """Numbers of the input sets, with the number of elements of each tensor."""
        return self._sets

    @property
    def most_calls(self) -> int:
        """Calls of one block at most."""
        return min(self._most_calls, self.depth.calls) if self._is_queued else self._most_calls

    @property
    def full(self) -> int:
        """Calls that fill a block."""
        return min(self._calls, self.most_calls)

    @property
    def clock_tolerance(self) -> float:
        """Relative disagreement of the two clocks above which the child's is not believed."""
        return self._timing.clock_tolerance

    def warm_up(self) -> None:
        """Run until clocks and caches are settled, and choose the size of a block by our clock.

        Raises:
            ChildFailed: the module raises, dies or hangs.
        """
        began_s = time.monotonic()
        self._fit(self.run(min(WARM_UP_CALLS, self._most_calls)))
        while time.monotonic() - began_s < WARM_UP_S:
            self._fit(self.run(self.full))
        self.find_depth()

    def find_depth(self) -> None:
        """Have blocks of no more calls than are queued whole now; a GPU's alone.

        Raises:
            ChildFailed: the module raises, dies or hangs.
        """
        if not self._is_queued:
            return
        self.depth.begin()
        while self.depth.learn([self.run(self.full)]):
            self.depth.calls = self.depth.found
        self.depth.calls = self.depth.found

    def block(self, calls: int | None = None) -> Block:
        """Time one block of calls.

        CPU: the mean of its calls. CUDA: the median of cold calls.

        Args:
            calls: how many, `most_calls` at most; None for those that fill a block.

        Raises:
            ChildFailed: the module raises, dies or hangs, or its clock is no clock.
        """
        block = self.run(self.full if calls is None else calls)
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
            yield self.run(some, pace=pace, tells_apart=clears)
            count -= some

    def _fit(self, block: Block) -> None:
        """Choose how many calls fill a block, by the quickest that was seen.

        A busy host only adds. A block whose size was chosen while it did has too few calls for
        ever, and each of them is slower than one among many: what is compared must be alike.
        """
        self._least_us = min(self._least_us, max(block.wall_us / block.calls, 0.05))
        wanted = math.ceil(self._timing.block_ms * 1e3 / self._least_us)
        self._calls = max(1, min(wanted, self._most_calls))

    def run(
        self,
        calls: int,
        *,
        pace: Pace = "ahead",
        tells_apart: bool | None = None,
        waits: bool = True,
    ) -> Block:
        """Run a block of so many calls; its input content is known to nobody before.

        Args:
            calls: `most_calls` at most, for the outputs that are kept.
            pace: of their launches.
            tells_apart: whether each call is timed, cold where the device can; None: as it is
                timed in a race.
            waits: whether a GPU's block is queued before it goes. Else nothing of it is held, and
                launching shows in its times: who is called while its input lies there, and nobody
                looks at the clock yet, could work ahead.

        Raises:
            ChildFailed: as `block`.
        """
        if tells_apart is None:
            tells_apart = self.device == "cuda"
        numbers = sorted(self._sets)
        seed, key = self._rng.getrandbits(32), self._rng.getrandbits(63)
        block: dict[str, Any] = {
            "numbers": numbers,
            "count": calls,
            "seed": seed,
            "flush": tells_apart,
            "pace": pace,
            "copies": self._copies,
        }
        is_released = self._is_queued and pace == "ahead"
        waited_ns = self._waited_ns()
        began_ns = time.perf_counter_ns()
        release: Release | None = None
        if is_released:
            answer, release = self._released(block, key=key, waits=waits)
            began_ns = release.went_ns
        else:
            answer = self.child.ask("time", timeout_s=self._limit_s, key=key, **block)
        answer_us = (time.perf_counter_ns() - began_ns) / 1e3
        share = free_share(waited_ns, self._waited_ns(), wall_us=answer_us)
        self.last = Made(
            numbers=tuple(numbers),
            seed=seed,
            key=key,
            calls=calls,
            commitment=str(answer.get("commitment", ""))[:64],
            last=answer.get("last"),
            pool_words=self.child.pool_words if is_released and tells_apart else 0,
        )
        calls_us, total_us = told_times(answer, expected=calls if tells_apart else 1)
        return Block(
            calls=calls,
            wall_us=answer_us if release is None else release.wall_us,
            call_us=statistics.median(calls_us),
            busy_us=statistics.fmean(calls_us) * calls,
            total_us=total_us,
            calls_us=tuple(calls_us) if tells_apart else (),
            answer_us=answer_us,
            was_queued=release is None or release.was_queued,
            free_share=share,
        )

    @property
    def _is_queued(self) -> bool:
        return self.device == "cuda"

    def _released(
        self, block: dict[str, Any], *, key: int, waits: bool
    ) -> tuple[dict[str, Any], Release]:
        """Have a block queued, let it go, and return its answer.

        Raises:
            ChildFailed: as `block`; or the device said that it was done with another output than
                the block ends with.
        """
        patience_s = (VAIN_QUEUE_S if self.depth.is_vain else QUEUE_S) if waits else 0.0
        answer, release = self.child.ask_released(
            "time", timeout_s=self._limit_s, patience_s=patience_s, key=key, **block
        )
        if answer.get("last") != release.last:
            why = "a block ended with another output than was there when the device had done it"
            raise ChildFailed("raised", "clock", why)
        return answer, release

    def _waited_ns(self) -> dict[int, int]:
        """What threads of the child waited for a processor; a GPU's calls are timed by the GPU."""
        return threads_waited_ns(self.child) if self.device == "cpu" else {}
