"""What looking on costs: `kopt watch` in a terminal of its own beside a run that goes on.

    python scripts/bench_watch.py [run=FOLDER] [seconds=60] [every=2] [problem=…] --json
    python scripts/bench_watch.py candidates_per_s=20 searches=2000 --json

Without `run` a search is started for it on this machine; with `candidates_per_s` a process writes
the journal of a fleet of so many searches at that pace, as the driver of dozens of GPUs would.
Prints the processor's time of the watching process over wall time, from its first frame on; what
starting it took is told apart.
Exit code 1 where it is 2 % of a core or more, or where it wrote into the run folder.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import multiprocessing
import os
import platform
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from kopt.clock import SystemClock
from kopt.data.journal import Journal
from kopt.data.lanes_file import read_lanes, write_lanes
from kopt.events import Told
from kopt.lane import LaneLoad
from kopt.problem import Problem
from kopt.testing.fakes import correct, source_candidate
from kopt.testing.sample_journal import asked, made, reached, started
from kopt.verdict import Crashed

SETTINGS = {
    "run": "",
    "seconds": "60",
    "every": "2",
    "problem": "builtin/softmax,builtin/layer_norm,builtin/linear_row_sum",
    "candidates_per_s": "0",
    "searches": "2000",
}
BAR = 0.02
"""Share of a core that looking on may take (issue 11 of 13)."""
ROWS, COLUMNS = 24, 80
START_S = 120.0
USAGE_EXIT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one process that looked on."""

    start_cpu_s: float
    """Until its first frame."""
    cpu_s: float
    """After it."""
    wall_s: float
    drawn_bytes: int
    """That the terminal was sent after the first frame."""
    opened_to_write: list[str]
    """Files of the run that it held open for writing at any look."""

    @property
    def share(self) -> float:
        """Of one core."""
        return self.cpu_s / self.wall_s


def settings_of(arguments: list[str]) -> dict[str, str]:
    """Return the settings with the overrides applied.

    Raises:
        ValueError: an argument is not a known name=value.
    """
    settings = dict(SETTINGS)
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if not separator or name not in settings:
            raise ValueError(f"expected one of {', '.join(SETTINGS)} as name=value, got {argument}")
        settings[name] = value
    return settings


def cpu_s(pid: int) -> float:
    """Return the seconds of processors that a process has had, user's and system's."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch_cost(run: Path, *, seconds: float, every_s: float) -> Cost:
    """Watch a run that goes on in a terminal of 80 columns, and return what that cost.

    Raises:
        RuntimeError: it ended before the time was over, or drew nothing.
    """
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "kopt", "watch", str(run), "--every", f"{every_s:g}"]
    watcher = subprocess.Popen(
        command, stdin=there, stdout=there, stderr=there, env={**os.environ, "TERM": "xterm"}
    )
    os.close(there)
    try:
        if not _read_for(here, START_S, first_only=True):
            raise RuntimeError(f"it drew nothing within {START_S:g} s")
        begun_s, began_cpu_s = time.monotonic(), cpu_s(watcher.pid)
        drawn, held = 0, set()
        while (left_s := begun_s + seconds - time.monotonic()) > 0.0:
            drawn += _read_for(here, min(1.0, left_s))
            held |= _written(watcher.pid, run)
            if watcher.poll() is not None:
                raise RuntimeError("the run ended before the time was over; give it a longer one")
        wall_s = time.monotonic() - begun_s
        return Cost(
            start_cpu_s=began_cpu_s,
            cpu_s=cpu_s(watcher.pid) - began_cpu_s,
            wall_s=wall_s,
            drawn_bytes=drawn,
            opened_to_write=sorted(held),
        )
    finally:
        watcher.kill()
        watcher.wait()
        os.close(here)


def _read_for(terminal: int, seconds: float, *, first_only: bool = False) -> int:
    """Take what the terminal is sent for so long; return how many bytes."""
    read, until_s = 0, time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0.0:
        if not select.select([terminal], [], [], left_s)[0]:
            break
        try:
            read += len(os.read(terminal, 1 << 16))
        except OSError:  # the other side is gone
            break
        if first_only:
            break
    return read


def _written(pid: int, run: Path) -> set[str]:
    """Return the files of the run that a process holds open for writing now."""
    held = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = link.readlink()
            flags = int(
                Path(f"/proc/{pid}/fdinfo/{link.name}").read_text().split("flags:")[1][:12], 8
            )
        except (OSError, ValueError):
            continue
        if target.is_relative_to(run) and flags & (os.O_WRONLY | os.O_RDWR):
            held.add(target.name)
    return held


def started_run(folder: Path, *, problem: str) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a long search of a few problems, and return it with its folder once it has begun."""
    names = "[" + problem + "]"
    command = [
        *(sys.executable, "-m", "kopt", "run", f"problem={names}", "search.iterations=1000"),
        *("search=best_of_n", "programmer=rewriter", f"out={folder}", "name=watched", "seed=[0,1]"),
    ]
    with (folder / "run.log").open("wb") as log:
        driver = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    journal = folder / "watched" / "journal"
    until_s = time.monotonic() + START_S
    while not (journal.is_dir() and any(path.stat().st_size for path in journal.iterdir())):
        if driver.poll() is not None or time.monotonic() > until_s:
            raise RuntimeError(f"the run did not begin: {(folder / 'run.log').read_text()[-500:]}")
        time.sleep(0.5)
    return driver, folder / "watched"


def fed_run(folder: Path, *, candidates_per_s: float, searches: int) -> tuple[BaseProcess, Path]:
    """Start a process that writes a journal at a pace, and return it with the run's folder."""
    run = folder / "watched"
    run.mkdir()
    arguments = (run, candidates_per_s, searches)
    feeder = multiprocessing.get_context("spawn").Process(target=feed, args=arguments, daemon=True)
    feeder.start()
    until_s = time.monotonic() + START_S
    while read_lanes(run) is None:
        if not feeder.is_alive() or time.monotonic() > until_s:
            raise RuntimeError("the stand-in did not begin")
        time.sleep(0.2)
    return feeder, run


def feed(run: Path, candidates_per_s: float, searches: int) -> None:
    """Write the events of a fleet, one candidate after the other, until the process is ended."""
    clock = SystemClock()
    lane = LaneLoad(
        name="timing", num_calls=8, num_places=8, num_waiting=40, busy_s=7.0, began_s=0.0
    )
    problems = [
        Problem(name=f"set/p{number}", source="class Model: ...\n") for number in range(searches)
    ]
    names = [f"{problem.name}/arm/0" for problem in problems]
    verdicts = (correct(1.5), Crashed(stage="run", log="segmentation fault"), correct(2.0))
    with Journal(run, run=run.name, clock=clock) as journal:
        for name, problem in zip(names, problems, strict=True):
            journal.append(name, started(problem, arm="arm", seed=0))
        lanes_s = 0.0
        began_s = time.monotonic()
        for number in itertools.count():
            place, expansion = number % searches, number // searches
            candidate = source_candidate(f"# {number}\n")
            slot = {"expansion": expansion, "index": 0}
            verdict = verdicts[number % len(verdicts)]
            for event in (
                asked(expansion, num_candidates=1),
                made(candidate, **slot),
                reached(candidate, verdict, problem=problems[place], **slot),
                Told(**slot, node=expansion + 1, reward=0.5),
            ):
                journal.append(names[place], event)
            if time.monotonic() > lanes_s + 1.0:
                lanes_s = time.monotonic()
                write_lanes(run, [lane], time_ns=clock.now_ns())
            time.sleep(max(0.0, began_s + number / candidates_per_s - time.monotonic()))


def main(arguments: list[str]) -> int:
    """Measure and print; 0 where the bar is met."""
    as_json = "--json" in arguments
    try:
        settings = settings_of([argument for argument in arguments if argument != "--json"])
        seconds, every_s = float(settings["seconds"]), float(settings["every"])
        pace, searches = float(settings["candidates_per_s"]), int(settings["searches"])
    except ValueError as error:
        print(f"bench_watch: {error}", file=sys.stderr)
        return USAGE_EXIT
    folder = Path(tempfile.mkdtemp(prefix="kopt-bench-watch-"))
    driver: subprocess.Popen[bytes] | BaseProcess | None = None
    try:
        run = Path(settings["run"])
        if pace > 0.0:
            driver, run = fed_run(folder, candidates_per_s=pace, searches=searches)
        elif not settings["run"]:
            driver, run = started_run(folder, problem=settings["problem"])
        cost = watch_cost(run.resolve(), seconds=seconds, every_s=every_s)
    except RuntimeError as error:
        print(f"bench_watch: {error}", file=sys.stderr)
        return 1
    finally:
        if isinstance(driver, BaseProcess):
            driver.kill()
        elif driver is not None:
            driver.terminate()
            try:
                driver.wait(timeout=60)
            except subprocess.TimeoutExpired:
                driver.kill()
        shutil.rmtree(folder, ignore_errors=True)
    found = {
        "share_of_a_core": cost.share,
        "cpu_s": cost.cpu_s,
        "wall_s": cost.wall_s,
        "start_cpu_s": cost.start_cpu_s,
        "drawn_bytes_per_s": cost.drawn_bytes / cost.wall_s,
        "opened_to_write": cost.opened_to_write,
        "candidates_per_s": pace or None,
        "every_s": every_s,
        "load_1min": os.getloadavg()[0],
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    print(
        f"{cost.share:.2%} of a core over {cost.wall_s:.0f} s, a look every {every_s:g} s; "
        f"{cost.start_cpu_s:.1f} s to start; {found['drawn_bytes_per_s']:.0f} bytes/s drawn; "
        f"wrote {cost.opened_to_write or 'nothing'}; load {found['load_1min']:.1f}"
    )
    if as_json:
        print(json.dumps(found))
    return 0 if cost.share < BAR and not cost.opened_to_write else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
