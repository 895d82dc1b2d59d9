"""The A/A study's races: an equal candidate, or one with less work, against a reference."""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import TextIO

from aa_study_counts import Series, text_of

from kopt.actors.config import EvaluateConfig, TimingConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.race import passes_gate
from kopt.actors.supervisor.repeated import RaceStudy, Rematch
from kopt.actors.supervisor.trail import Judged
from kopt.candidate import Candidate
from kopt.problem import Problem

FEW_STEPS, MANY_STEPS = (33, 34), (100, 103)
"""Steps of the candidate, and of a reference with 3 % more: short calls have few."""
SHORT_US = 300.0
FIRST_ELEMENTS: dict[DeviceName, int] = {"cpu": 8_192, "cuda": 1 << 20}
LEAST_ELEMENTS = 1_024
CLOSE = 0.3
"""A call that is off the wanted time by no more will do."""
SIZINGS = 3
SOURCE = """\
import torch


class {name}(torch.nn.Module):
    def forward(self, x):
        for _ in range({steps}):
            x = torch.relu(x)
        return x


def get_inputs():
    return [torch.randn({elements})]
"""


class Study:
    """Races on one device until the time is up."""

    def __init__(
        self,
        *,
        device: DeviceName,
        limit_s: float,
        max_pairs: int,
        races_each: int,
        secret: int,
        folder: Path,
        show: TextIO,
    ) -> None:
        """Start a supervisor.

        Args:
            device: kind of device.
            limit_s: seconds for all that is raced, from now.
            max_pairs: of a race.
            races_each: of two processes, before both are made anew; more where the time would not
                suffice for all races otherwise.
            secret: of the hidden inputs, and of the coins.
            folder: for what is kept meanwhile.
            show: where each series is told when it ends.

        Raises:
            ConfigError: the device is not here.
        """
        self._device, self._races_each = device, races_each
        self._folder, self._show = folder, show
        self._until_s = time.monotonic() + limit_s
        config = EvaluateConfig(
            compile=False, trials=1, secret=secret, timing=TimingConfig(max_pairs=max_pairs)
        )
        self._supervisor = RaceStudy(config, device=device, cache_dir=folder / "cache")

    def close(self) -> None:
        """End the supervisor."""
        self._supervisor.close()

    def run(self, sizes_us: list[float], *, trials: int, gain_trials: int) -> list[Series]:
        """Run both kinds of races at every size, each with its share of the time that is left.

        Args:
            sizes_us: wanted of a call of the reference.
            trials: of an equal candidate at each.
            gain_trials: of one with less work, at each.
        """
        waiting = [
            (size_us, steps, count)
            for size_us in sizes_us
            for steps, count in _kinds(size_us, trials=trials, gain_trials=gain_trials)
        ]
        elements = {size_us: self._sized(size_us, steps=_steps(size_us)[0]) for size_us in sizes_us}
        found = []
        while waiting:
            left_s = max(self._until_s - time.monotonic(), 0.0)
            size_us, steps, count = waiting[0]
            share = count / max(sum(each[2] for each in waiting), 1)
            series = Series(
                size_us=size_us,
                elements=elements[size_us],
                gain=steps[1] / steps[0] - 1.0,
                wanted=count,
            )
            self._fill(series, steps=steps, until_s=time.monotonic() + left_s * share)
            self._show.write(f"{text_of(series)}\n")
            self._show.flush()
            found.append(series)
            waiting.pop(0)
        return found

    def _sized(self, size_us: float, *, steps: int) -> int:
        """Return how many elements make a call of the reference take about that long."""
        elements = FIRST_ELEMENTS[self._device]
        for _ in range(SIZINGS):
            series = Series(size_us=size_us, elements=elements, gain=0.0, wanted=0)
            self._fill(series, steps=(steps, steps), until_s=math.inf)
            if abs(series.baseline_us / size_us - 1.0) <= CLOSE:
                break
            wanted = int(elements * size_us / series.baseline_us)
            elements = max(LEAST_ELEMENTS, wanted // 256 * 256)
        return elements

    def _fill(self, series: Series, *, steps: tuple[int, int], until_s: float) -> None:
        """Race in one pair of new processes after the other; a series of no race loads one pair.

        Args:
            series: that is filled in.
            steps: of the candidate, and of the reference.
            until_s: when the time is up, on the monotonic clock.
        """
        mine, theirs = steps
        text = _source("Model", steps=theirs, elements=series.elements)
        problem = Problem(name="chain", source=text)
        text = _source("ModelNew", steps=mine, elements=series.elements)
        candidate = Candidate(source=text, language="torch")
        while True:
            began_s = time.monotonic()
            builds = Path(tempfile.mkdtemp(dir=self._folder))
            with self._supervisor.rematch(problem, candidate, build_dir=builds) as rematch:
                series.baseline_us = series.baseline_us or rematch.baseline_us
                loaded_s = time.monotonic()
                count = series.races_now(
                    self._races_each, load_s=loaded_s - began_s, left_s=until_s - loaded_s
                )
                _race(series, rematch, count=count, until_s=until_s)
            series.wall_s += time.monotonic() - began_s
            if series.trials >= series.wanted or time.monotonic() >= until_s:
                return


def _race(series: Series, rematch: Rematch, *, count: int, until_s: float) -> None:
    began_s = time.monotonic()
    ratios = []
    for _ in range(count):
        if time.monotonic() >= until_s:
            break
        series.trials += 1
        try:
            timing = rematch.race()
        except Judged:
            series.refused += 1
            continue
        series.gate += passes_gate(timing)
        series.interval += timing.speedup_ci[0] > 1.0
        series.pairs += timing.num_pairs
        ratios.append(math.log(timing.speedup))
        low, high = timing.speedup_ci
        series.widths.append(math.log(high / low))
    series.races_s += time.monotonic() - began_s
    if ratios:
        series.centers.append(sum(ratios) / len(ratios))


def _kinds(size_us: float, *, trials: int, gain_trials: int) -> list[tuple[tuple[int, int], int]]:
    fewer, more = _steps(size_us)
    kinds = [((fewer, fewer), trials), ((fewer, more), gain_trials)]
    return [kind for kind in kinds if kind[1] > 0]


def _steps(size_us: float) -> tuple[int, int]:
    return FEW_STEPS if size_us <= SHORT_US else MANY_STEPS


def _source(name: str, *, steps: int, elements: int) -> str:
    return SOURCE.format(name=name, steps=steps, elements=elements)
