"""The A/A study's races: an equal candidate, or one with less work, against a reference."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from aa_study_counts import Series, text_of
from aa_study_kernels import WORK, Kind, Ring, Work

from kopt.actors.config import EvaluateConfig, TimingConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.race import passes_gate
from kopt.actors.supervisor.repeated import RaceStudy, Rematch
from kopt.actors.supervisor.trail import Judged


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

    def run(
        self, wanted: Sequence[tuple[Kind, float]], *, trials: int, gain_trials: int
    ) -> list[Series]:
        """Run both kinds of races of every kernel, each with its share of the time that is left.

        Args:
            wanted: kind of kernel, and the microseconds of a call of the reference.
            trials: of an equal candidate, for each.
            gain_trials: of one with less work, for each.
        """
        waiting = [
            (kind, size_us, work, count)
            for kind, size_us in wanted
            for work, count in zip(WORK[kind], (trials, gain_trials), strict=True)
            if count > 0
        ]
        elements = {each: self._ring(each[0]).sized(each[1])[0] for each in wanted}
        found = []
        while waiting:
            left_s = max(self._until_s - time.monotonic(), 0.0)
            kind, size_us, work, count = waiting[0]
            share = count / max(sum(each[3] for each in waiting), 1)
            series = Series(
                kind=kind,
                size_us=size_us,
                elements=elements[kind, size_us],
                gain=work.gain,
                wanted=count,
            )
            self._fill(series, work=work, until_s=time.monotonic() + left_s * share)
            self._show.write(f"{text_of(series)}\n")
            self._show.flush()
            found.append(series)
            waiting.pop(0)
        return found

    def _ring(self, kind: Kind) -> Ring:
        return Ring(study=self._supervisor, kind=kind, device=self._device, folder=self._folder)

    def _fill(self, series: Series, *, work: Work, until_s: float) -> None:
        """Race in one pair of new processes after the other.

        Args:
            series: that is filled in.
            work: of the candidate and of the reference.
            until_s: when the time is up, on the monotonic clock.
        """
        while True:
            began_s = time.monotonic()
            with self._ring(series.kind).pair(work, elements=series.elements) as rematch:
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
