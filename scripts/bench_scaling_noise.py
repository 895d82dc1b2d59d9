"""A/A races of bench_scaling.py on one device, alone and with its neighbours busy.

Run as a script it is the racer: a process of its own, since its device is its environment's. It
sizes a kernel of one launch to the wanted microseconds once, and answers each line of standard
input, `STATE RACES SECONDS`, with one JSON object: races of equal kernels as an evaluation runs
them (kopt.actors.supervisor.repeated), a new pair of processes every PAIR_RACES. A race that the
two clocks do not support is refused and counts as a race that nobody won. What the seconds leave
undone is missing from the counts, never guessed.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal, cast

from aa_study_counts import Rate
from aa_study_kernels import WORK, Ring
from bench_scaling_fleet import pinned

from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.race import passes_gate
from kopt.actors.supervisor.repeated import RaceStudy
from kopt.actors.supervisor.trail import Judged
from kopt.environment import CACHE_VARIABLE, cache_dir

State = Literal["alone", "beside"]
SECRET = 1
PAIR_RACES = 20
"""Races of one pair of processes: two of the same code may differ for as long as they live."""


@dataclass(slots=True, kw_only=True)
class Races:
    """Races of equal kernels in one state of the neighbours."""

    state: State
    baseline_us: float = 0.0
    """Of the last pair."""
    pairs_of_processes: int = 0
    log_ratios: list[float] = field(default_factory=list)
    """Natural logarithm of each race's speed-up; none of those that were refused."""
    refused: int = 0
    gate: int = 0
    """Races in which gate 4 called the equal kernel faster."""
    interval: int = 0
    """Races whose interval lay above 1."""
    seconds: float = 0.0

    @property
    def races(self) -> int:
        """Those that were refused included."""
        return len(self.log_ratios) + self.refused


def figures_of_races(races: Races) -> dict[str, Any]:
    """Return counts, rates with their intervals, and the spread of the log-ratio."""
    ratios = races.log_ratios
    return {
        **asdict(races),
        "races": races.races,
        "spread": stdev(ratios) if len(ratios) > 1 else None,
        "mean": fmean(ratios) if ratios else None,
        "false_wins_gate": Rate(count=races.gate, trials=races.races).to_json(),
        "false_wins_interval": Rate(count=races.interval, trials=races.races).to_json(),
    }


class Racer:
    """The process that races on one device. A context manager."""

    def __init__(
        self, *, device: str, gpu: str, cores: Collection[int], size_us: float, cache: Path
    ) -> None:
        """Start it; it is ready once `ready` says so.

        Args:
            device: `cpu` or `cuda`.
            gpu: as CUDA_VISIBLE_DEVICES names it.
            cores: that it may use.
            size_us: wanted of a call.
            cache: KOPT_CACHE_DIR.
        """
        environment = {**os.environ, CACHE_VARIABLE: str(cache)}
        cache.mkdir(parents=True, exist_ok=True)
        self._log = cache / "racer.log"
        if device == "cuda":
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                pinned([sys.executable, __file__, device, str(size_us)], cores=cores),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )

    def __enter__(self) -> Racer:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ready(self) -> dict[str, Any]:
        """Wait for it to be ready; return what its kernel is like, `fault` where it has none."""
        return self._answer()

    def race(self, state: State, *, races: int, seconds: float) -> dict[str, Any]:
        """Have it race; return the figures, or a `fault`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{state} {races} {seconds}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"fault": "the racer has ended"}
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return cast("dict[str, Any]", json.loads(line))
        last = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
        return {"fault": f"the racer ended: {' '.join(last) or self._process.wait()}"}


class _Ground:
    """Equal kernels on this process's device."""

    def __init__(self, device: DeviceName, *, size_us: float, folder: Path) -> None:
        self._study = RaceStudy(
            EvaluateConfig(compile=False, trials=1, secret=SECRET),
            device=device,
            cache_dir=cache_dir(),
        )
        self._ring = Ring(study=self._study, kind="single", device=device, folder=folder)
        self.elements, self.baseline_us = self._ring.sized(size_us)

    def close(self) -> None:
        """End the supervisor."""
        self._study.close()

    def run(self, found: Races, *, races: int, seconds: float) -> None:
        """Race until there are enough, or the time is over."""
        equal, _ = WORK["single"]
        began_s = time.monotonic()
        while True:
            with self._ring.pair(equal, elements=self.elements) as rematch:
                found.baseline_us = rematch.baseline_us
                found.pairs_of_processes += 1
                until = min(races, found.races + PAIR_RACES)
                while found.races < until and time.monotonic() - began_s < seconds:
                    try:
                        timing = rematch.race()
                    except Judged:
                        found.refused += 1
                        continue
                    found.log_ratios.append(math.log(timing.speedup))
                    found.gate += passes_gate(timing)
                    found.interval += timing.speedup_ci[0] > 1.0
            found.seconds = time.monotonic() - began_s
            if found.races >= races or found.seconds >= seconds:
                return


def main() -> None:
    """Race as standard input says, until it ends."""
    device: DeviceName = "cuda" if sys.argv[1] == "cuda" else "cpu"
    with tempfile.TemporaryDirectory(prefix="scaling-", ignore_cleanup_errors=True) as folder:
        ground = _Ground(device, size_us=float(sys.argv[2]), folder=Path(folder))
        try:
            print(json.dumps({"elements": ground.elements, "baseline_us": ground.baseline_us}))
            sys.stdout.flush()
            for line in sys.stdin:
                state, races, seconds = line.split()
                found = Races(state="beside" if state == "beside" else "alone")
                ground.run(found, races=int(races), seconds=float(seconds))
                print(json.dumps(figures_of_races(found)))
                sys.stdout.flush()
        finally:
            ground.close()


if __name__ == "__main__":
    main()
