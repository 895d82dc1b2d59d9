"""A device worker of a running fleet is killed: what bench_scaling.py makes of it.

The worker's process dies by SIGKILL while it holds candidates, as it would by the kernel's
out-of-memory killer. The run must end by itself, with every candidate that the same run had without
the accident, each judged and told once in the journal.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from bench_scaling_fleet import Fleet, Look, Order
from bench_scaling_journal import Story, figures_of, read_story

WORKER_TITLE = "ray::DeviceWorker"
"""How Ray names the process of a device worker."""
STALE_NS = 1_500_000_000
"""A driver writes once a second what its lanes hold: what is seen sooner may be of before."""


class Killer:
    """Kills one device worker of a fleet once, when the fleet is well under way."""

    def __init__(self, fleet: Fleet, *, after: int) -> None:
        """Wait for the moment.

        Args:
            fleet: that runs.
            after: verdicts that it is to have by then.
        """
        self._fleet = fleet
        self._after = after
        self.killed_ns = 0
        """0 before."""
        self.judged_before = 0
        self.held = 0
        """Candidates that the devices held at that moment, the killed one's among them."""
        self.recovered_ns = 0
        """When the devices held as many candidates again; 0 if never."""

    def look(self, look: Look) -> bool:
        """Take a look in, and kill if it is time; False, since the fleet goes on."""
        lane = look.lane("timing")
        if lane is None:
            return False
        if self.killed_ns:
            is_new = look.at_ns - self.killed_ns > STALE_NS
            if is_new and not self.recovered_ns and lane.num_calls >= self.held:
                self.recovered_ns = look.at_ns
            return False
        if 2 * lane.num_calls < lane.num_places:
            return False  # whoever is killed is to hold some
        self.judged_before = len(read_story(self._fleet.watched.run).judged_ns)
        workers = device_workers(self._fleet.pid)
        if self.judged_before >= self._after and workers:
            os.kill(workers[0], signal.SIGKILL)
            self.held = lane.num_calls
            self.killed_ns = time.time_ns()
        return False


def run_and_kill(
    order: Order, folder: Path, *, whole: Story | None, until_s: float
) -> dict[str, Any]:
    """Run a fleet, kill a device worker in its midst, and return what came of it.

    Args:
        order: of the fleet.
        folder: its run folder is made there.
        whole: of the same order without an accident; None where there is none to compare with.
        until_s: on the monotonic clock.
    """
    with Fleet(order, folder) as fleet:
        killer = Killer(fleet, after=order.candidates * len(order.problems) // 3)
        watched = fleet.watch(until_s=until_s, on_look=killer.look)
        watched = fleet.stop()
    story = read_story(watched.run)
    found = figures_of(watched, story)
    found["was_killed"] = killer.killed_ns > 0
    if killer.killed_ns:
        found |= {
            "judged_before": killer.judged_before,
            "held": killer.held,
            "recovered_s": (killer.recovered_ns - killer.killed_ns) / 1e9
            if killer.recovered_ns
            else None,
        }
    if whole is not None:
        found["missing"] = len(whole.candidates - story.candidates)
        found["more"] = len(story.candidates - whole.candidates)
    return found


def device_workers(driver: int, *, proc: Path = Path("/proc")) -> list[int]:
    """Return the processes of device workers below a driver, those first that run a method.

    Args:
        driver: its process id.
        proc: where the kernel tells of processes.
    """
    parents: dict[int, int] = {}
    for path in proc.glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it ended meanwhile
        parents[int(path.parent.name)] = int(text.rpartition(")")[2].split()[1])
    found = []
    for number in parents:
        above, seen = parents.get(number, 0), {number}
        while above not in (0, driver) and above not in seen:
            seen.add(above)
            above = parents.get(above, 0)
        title = _title(proc / str(number))
        if above == driver and title.startswith(WORKER_TITLE):
            found.append((not title.startswith(f"{WORKER_TITLE}."), number))
    return [number for _, number in sorted(found)]


def _title(path: Path) -> str:
    try:
        return (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
