"""One fleet of bench_scaling.py: `kopt run` in a process of its own, looked at while it runs.

Cores and GPUs are given to the process, not to kopt: its affinity and CUDA_VISIBLE_DEVICES hold for
all that it starts, so that a fleet of one GPU has the share of the host that each GPU of a larger
fleet has. What a look finds: the driver's processor seconds and memory, by the kernel's own record,
and how full its lanes are, by the file that `kopt watch` reads.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench_throughput_processor import tree_cpu_s

from kopt.data.lanes_file import read_lanes
from kopt.environment import CACHE_VARIABLE
from kopt.lane import LaneLoad

LOOK_S = 0.25
"""Between two looks."""
ENDING_S = 20.0
"""For a fleet that was interrupted to end by itself."""
SECRET = 20_260_101
"""Of the hidden inputs: the same from run to run."""
PIN = """\
import os, sys
os.sched_setaffinity(0, {int(core) for core in sys.argv[1].split(",")})
os.execv(sys.argv[2], sys.argv[2:])
"""
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a fleet is to do, with what."""

    name: str
    """Of its run folder."""
    device: Literal["cpu", "cuda"]
    gpus: tuple[str, ...]
    """As CUDA_VISIBLE_DEVICES names them; on a CPU any names, one for each device worker."""
    cores: Collection[int]
    """That all of its processes may use."""
    problems: tuple[str, ...]
    candidates: int
    """Of each problem: a multiple of PER_EXPANSION."""
    cache: Path
    """KOPT_CACHE_DIR."""
    limit_s: float
    """`limits.wall_s`."""
    search: Literal["best_of_n", "mcts"] = "best_of_n"
    """Of best_of_n every candidate is from the root: the same, whatever comes of the others."""
    overrides: tuple[str, ...] = ()
    """More words for `kopt run`; they stand last, so that they count."""

    def command(self, folder: Path) -> list[str]:
        """Return what is started; run folders are made in `folder`."""
        problems = ",".join(self.problems)
        return [
            *pinned([sys.executable, "-m", "kopt", "run", "--json"], cores=self.cores),
            *(f"problem=[{problems}]", f"device={self.device}", f"out={folder}"),
            *(f"name={self.name}", f"cluster.devices={len(self.gpus)}"),
            *(f"search={self.search}", f"search.iterations={self.candidates // PER_EXPANSION}"),
            *(f"search.candidates={PER_EXPANSION}", "evaluate.cache=off", "findings=none"),
            *(f"evaluate.secret={SECRET}", f"limits.wall_s={self.limit_s:g}", *self.overrides),
        ]

    def environment(self) -> dict[str, str]:
        """Return the environment of its process."""
        own = {CACHE_VARIABLE: str(self.cache)}
        if self.device == "cuda":
            own["CUDA_VISIBLE_DEVICES"] = ",".join(self.gpus)
        return {**os.environ, **own}


PER_EXPANSION = 2
"""Candidates asked for at once, as by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen of a fleet at one moment."""

    at_ns: int
    """Since the epoch, as the journal's times."""
    driver_cpu_s: float
    """Processor seconds of the driver's process so far."""
    tree_cpu_s: float
    """The same of all of its processes that live."""
    driver_rss_mb: float
    """Most memory of the driver so far."""
    lanes: tuple[LaneLoad, ...] = ()

    def lane(self, name: str) -> LaneLoad | None:
        """Return a lane by its name; None where nothing was known of it yet."""
        return next((lane for lane in self.lanes if lane.name == name), None)


@dataclass(slots=True, kw_only=True)
class Watched:
    """A fleet that was run, as it was seen."""

    order: Order
    run: Path
    """Its run folder."""
    began_ns: int
    ended_ns: int = 0
    exit_code: int | None = None
    """None where it was stopped from here."""
    looks: list[Look] = field(default_factory=list)
    words: str = ""
    """The last lines that it printed on standard error."""

    def to_json(self) -> dict[str, Any]:
        """Return what tells it from others."""
        return {
            "gpus": len(self.order.gpus),
            "cores": len(self.order.cores),
            "exit_code": self.exit_code,
            "words": self.words,
        }


class Fleet:
    """A fleet that runs. A context manager: none outlives its context."""

    def __init__(self, order: Order, folder: Path) -> None:
        """Start it.

        Args:
            order: what it is to do.
            folder: its run folder is made there, beside what it prints.
        """
        self._log = folder / f"{order.name}.log"
        with self._log.open("wb") as log, (folder / f"{order.name}.json").open("wb") as out:
            self._process = subprocess.Popen(
                order.command(folder),
                stdout=out,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=order.environment(),
                start_new_session=True,
            )
        self.watched = Watched(order=order, run=folder / order.name, began_ns=time.time_ns())

    def __enter__(self) -> Fleet:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Stop it, if it still runs."""
        self.stop()

    @property
    def pid(self) -> int:
        """Of the driver."""
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def watch(
        self, *, until_s: float, on_look: Callable[[Look], bool] = lambda look: False
    ) -> Watched:
        """Look at it until it ends, the time is over, or `on_look` says that it is enough.

        Args:
            until_s: on the monotonic clock.
            on_look: called with each look.
        """
        while not self.is_over and time.monotonic() < until_s:
            look = look_at(self.pid, self.watched.run)
            if look is not None:
                self.watched.looks.append(look)
                if on_look(look):
                    break
            time.sleep(LOOK_S)
        if self.is_over:
            self._note_end(self._process.returncode)
        return self.watched

    def stop(self) -> Watched:
        """Interrupt it, as Ctrl-C does, and end what does not heed that."""
        if self.watched.ended_ns:
            return self.watched
        was_over = self.is_over
        if not was_over:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(ENDING_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.pid, signal.SIGKILL)
                self._process.wait()
        self._note_end(self._process.returncode if was_over else None)
        return self.watched

    def _note_end(self, exit_code: int | None) -> None:
        self.watched.exit_code = exit_code
        self.watched.ended_ns = time.time_ns()
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        self.watched.words = "\n".join(lines[-8:])


def pinned(command: Sequence[str], *, cores: Collection[int]) -> list[str]:
    """Return a command that runs another, in its place, on some cores of the host."""
    chosen = ",".join(str(core) for core in sorted(cores))
    return [sys.executable, "-c", PIN, chosen, *command]


def look_at(pid: int, run: Path) -> Look | None:
    """Return what is to be seen of a fleet now; None where its driver is gone.

    Args:
        pid: of its driver.
        run: its folder, there or not.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    words = stat.rpartition(")")[2].split()
    peak = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    if not peak:
        return None  # it has ended, and nobody has waited for it yet
    seen = read_lanes(run)
    return Look(
        at_ns=time.time_ns(),
        driver_cpu_s=sum(map(int, words[11:13])) * _TICK_S,
        tree_cpu_s=tree_cpu_s(pid),
        driver_rss_mb=int(peak[0]) / 1024,
        lanes=() if seen is None else seen.lanes,
    )


def shares_of(cores: Sequence[int], *, count: int) -> list[tuple[int, ...]]:
    """Share cores out alike, neighbours together; what does not divide is left out.

    Args:
        cores: that there are.
        count: of the shares, >= 1; with fewer cores than shares all have all.
    """
    each = len(cores) // count
    if each == 0:
        return [tuple(cores)] * count
    return [tuple(cores[n * each : (n + 1) * each]) for n in range(count)]
