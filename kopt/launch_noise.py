"""What launches add to the doubt about a GPU's speed-up: two processes of the same code differ.

Pure: numbers in, numbers out. Where a process's memory lies decides how long a small kernel waits
for it, for as long as the process lives: no number of calls shows it, and an interval that knows
calls alone calls an equal candidate faster. On an H200, pairs of processes of one chain of small
kernels were apart by 0.10 us a launch of 400, 0.13 us of 130, and 0.03 us of 33 larger ones (root
mean square of 9, 7 and 7 pairs; 0.2 us at most). What that is of a call of few launches, or long
ones, is next to nothing.
"""

from __future__ import annotations

from dataclasses import replace

from kopt.timing import Timing

LEAST_US = 1.5
"""That a launch takes a GPU: a compiled baseline has fewer than the eager one that was recorded."""
APART_US = 0.15
"""A launch, on each side: some two and a half times what was found, of both together."""


def widened(timing: Timing, *, mine: int, theirs: int) -> Timing:
    """Return a timing whose interval allows for how far apart its two processes may be.

    Args:
        timing: of a race on a GPU.
        mine: launches of the candidate's call.
        theirs: of the baseline's, or more (of the eager reference's).
    """
    apart = 1.0 + APART_US * mine / timing.time_us
    apart *= 1.0 + APART_US * min(theirs, timing.baseline_us / LEAST_US) / timing.baseline_us
    low, high = timing.speedup_ci
    return replace(timing, speedup_ci=(low / apart, high * apart))
