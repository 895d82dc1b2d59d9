"""Two clocks that must agree: a child's, which is a claim, and the supervisor's own.

The child's figure is believed where two things hold: our slope (wall time of many calls against
few) agrees with the child's on the same calls; and in the blocks that count, our clock sees no more
pass beside the child's calls than beside those of the baseline, which is timed between them. Even
then no time is reported below what our clock supports (kopt.hidden_time).

A busy host disturbs either clock, so a disagreement counts only where it stays on every attempt,
each with more work than the last; a clock that lies goes on lying.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.overhead import Block, beside_us, calm, calm_beside_us
from kopt.timing import clock_is_slow, slope_us

GAP_SHARE = 0.1
GAP_FLOOR_US = 10.0
BESIDE_FACTOR: dict[DeviceName, float] = {"cpu": 1.5, "cuda": 1.25}
"""Beside each call of a block may pass what passes beside the baseline's times a factor (on a GPU
mostly the sweep of a pool), a tenth of a call, and ten microseconds."""
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


def clocks_of(watch: Stopwatch, *, work_s: float = SLOPE_S[0]) -> Clocks:
    """Return what each clock says, of calls made as blocks make them.

    Args:
        watch: of the child.
        work_s: about the time that many calls take beyond few.

    Raises:
        ChildFailed: as `Stopwatch.block`.
    """
    full = watch.run(watch.full)
    call_us = max(full.wall_us / full.calls, 0.05)  # by ours: theirs might make it hours
    extra = max(watch.full, math.ceil(work_s * 1e6 / call_us))
    extra = max(1, min(extra, watch.most_calls * 4 // 5))
    found = sorted(
        (_slopes(watch, extra) for _ in range(SLOPE_REPEATS)),
        key=lambda clocks: clocks.slope_us - clocks.child_us,
    )
    return found[len(found) // 2]


def clocks_disagree(watch: Stopwatch) -> str | None:
    """Return what the clocks say where they disagree on every attempt; None where they agree.

    Raises:
        ChildFailed: as `Stopwatch.block`.
    """
    why = None
    for work_s in SLOPE_S:
        why = _disagreement(clocks_of(watch, work_s=work_s), tolerance=watch.clock_tolerance)
        if why is None:
            return None
    return why


def blocks_disagree(
    blocks: Sequence[Block], *, reference: Sequence[Block], device: DeviceName
) -> str | None:
    """Return what our clock says against the child's over the blocks of a race, or None.

    The clocks may have agreed when they were compared alone: what counts must agree too. A busy
    host only adds, so calm blocks of both are compared; lies in a few blocks alone are found by
    none, and do not pay (kopt.hidden_time).

    Args:
        blocks: of a candidate, at least one.
        reference: of the baseline, between these.
        device: kind of device.
    """
    mine = calm(blocks, share=CALM_SHARE)
    theirs_us = calm_beside_us(reference, calls=mine.calls, share=CALM_SHARE)
    allowed_us = BESIDE_FACTOR[device] * theirs_us
    if beside_us(mine) <= allowed_us + GAP_SHARE * mine.call_us + GAP_FLOOR_US:
        return None
    return (
        f"{beside_us(mine):.4g} us pass beside each of the candidate's timed calls, "
        f"{theirs_us:.4g} us beside the baseline's"
    )


def _slopes(watch: Stopwatch, extra: int) -> Clocks:
    few = max(1, extra // 4)
    short, long = watch.run(few), watch.run(few + extra)
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


def _disagreement(clocks: Clocks, *, tolerance: float) -> str | None:
    if not clock_is_slow(
        clocks.child_us,
        supervisor_us=clocks.slope_us,
        tolerance=tolerance,
        floor_us=CLOCK_FLOOR_US,
    ):
        return None
    return (
        f"the candidate's clock says {clocks.child_us:.4g} us a call, "
        f"the supervisor's {clocks.slope_us:.4g} us"
    )
