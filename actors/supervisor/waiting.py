"""How long the threads of a child waited for a processor, as the kernel counts it.

A child that shares a processor with another load is slow through no fault of its own, and may stay
so while the child that it is compared with has a processor to itself. The kernel's scheduler knows:
`/proc/PID/task/TID/schedstat` has the nanoseconds that each thread ran, and that it was ready to
run and did not. Neither is the child's to say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.held import processes

WAITED = 1
"""Place in schedstat of the time that a thread was ready to run and did not."""
MOST_SHARE = 0.99
"""Of a block's time that one thread is said to have waited, at most."""


def threads_waited_ns(child: Child) -> dict[int, int]:
    """Return how long each thread of a child has waited since it began.

    Empty where the kernel does not count it.
    """
    waited: dict[int, int] = {}
    for pid in processes(child):
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError, ValueError, IndexError):  # it ended meanwhile
                waited[int(path.parent.name)] = int(path.read_text("ascii").split()[WAITED])
    return waited


def free_share(before: Mapping[int, int], after: Mapping[int, int], *, wall_us: float) -> float:
    """Return the share of a time in which no thread of a child waited for a processor.

    Threads work on one call together, each on a processor that has a load of its own: what is lost
    is lost where any of them waits. The product over threads is right where their waits fall
    together as chance has it.

    Args:
        before: `threads_waited_ns` when the time began.
        after: the same when it ended; what a new thread waited counts.
        wall_us: that passed, above 0.
    """
    waited_us = [(each - before.get(thread, 0)) / 1e3 for thread, each in after.items()]
    return math.prod(1.0 - min(max(each / wall_us, 0.0), MOST_SHARE) for each in waited_us)
