"""A/A study: how often an equal kernel is called faster, and how often a true 3 % gain is found.

    python scripts/aa_study.py device=cuda trials=300 sizes=100,1000 gain_trials=100 --json

A trial is one race as an evaluation runs it (kopt.actors.supervisor.duel): candidate and baseline
in children of their own, interleaved, with every check of clocks and outputs, stopped by the racing
rule. The child is loaded once and raced again, so that a trial costs a race. Kernels are chains of
torch.relu, which once or a hundred times is the same function: an equal candidate has as many
steps as the reference, and where a gain is to be found the reference has 3 % more. Elements are
chosen so that a call takes about as many microseconds as `sizes` says.

Two rules are counted. `gate`: gate 4's, a speed-up of 1.03 and more, its interval above 1; no
equal kernel should pass it. `interval`: the interval alone. Rates are printed with their
Clopper-Pearson intervals of 95 %. `refused` are races whose clocks did not agree. What `limit_s`
leaves undone is missing from the counts, never guessed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO

from aa_study_counts import Series, text_of, verdict_of, words_of

from kopt.actors.config import EvaluateConfig, TimingConfig
from kopt.actors.devices.base import DeviceName, describe
from kopt.actors.supervisor.race import passes_gate
from kopt.actors.supervisor.repeated import RaceStudy
from kopt.actors.supervisor.trail import Judged
from kopt.candidate import Candidate
from kopt.problem import Problem

SETTINGS: dict[str, str] = {
    "device": "cpu",
    "trials": "300",
    "gain_trials": "100",
    "sizes": "100,1000",
    "limit_s": "360",
    "max_pairs": str(TimingConfig().max_pairs),
    "secret": "1",
}
USAGE_EXIT = 2
FEW_STEPS, MANY_STEPS = (33, 34), (100, 103)
"""Steps of the candidate, and of a reference with 3 % more: short calls have few."""
SHORT_US = 300.0
FIRST_ELEMENTS = {"cpu": 8_192, "cuda": 1 << 20}
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

    def __init__(self, settings: dict[str, str], *, folder: Path, show: TextIO) -> None:
        """Start a supervisor.

        Raises:
            ConfigError: the device is not here.
            ValueError: a setting is no number.
        """
        self._show = show
        self._folder = folder
        self._device: DeviceName = "cuda" if settings["device"] == "cuda" else "cpu"
        self._until_s = time.monotonic() + float(settings["limit_s"])
        config = EvaluateConfig(
            compile=False,
            trials=1,
            secret=int(settings["secret"]),
            timing=TimingConfig(max_pairs=int(settings["max_pairs"])),
        )
        self._supervisor = RaceStudy(config, device=self._device, cache_dir=folder / "cache")

    def close(self) -> None:
        """End the supervisor."""
        self._supervisor.close()

    def size(self, size_us: float, *, steps: int) -> int:
        """Return how many elements make a call of the reference take about that long."""
        elements = FIRST_ELEMENTS[self._device]
        for _ in range(SIZINGS):
            found = self.series(size_us, elements=elements, steps=(steps, steps), trials=0)
            if abs(found.baseline_us / size_us - 1.0) <= CLOSE:
                break
            wanted = int(elements * size_us / found.baseline_us)
            elements = max(LEAST_ELEMENTS, wanted // 256 * 256)
        return elements

    def series(
        self,
        size_us: float,
        *,
        elements: int,
        steps: tuple[int, int],
        trials: int,
        limit_s: float = 0.0,
    ) -> Series:
        """Race a candidate against a reference, so and so many times or until the time is up.

        Args:
            size_us: wanted of a call.
            elements: of the input.
            steps: of the candidate, and of the reference.
            trials: races at most.
            limit_s: seconds for all races together.
        """
        mine, theirs = steps
        problem = Problem(name="chain", source=_source("Model", steps=theirs, elements=elements))
        text = _source("ModelNew", steps=mine, elements=elements)
        candidate = Candidate(source=text, language="torch")
        builds = Path(tempfile.mkdtemp(dir=self._folder))
        with self._supervisor.rematch(problem, candidate, build_dir=builds) as rematch:
            series = Series(
                size_us=size_us,
                baseline_us=rematch.baseline_us,
                elements=elements,
                gain=theirs / mine - 1.0,
            )
            began_s = time.monotonic()
            while series.trials < trials and series.wall_s < limit_s:
                series.trials += 1
                try:
                    timing = rematch.race()
                except Judged:
                    series.refused += 1
                else:
                    series.gate += passes_gate(timing)
                    series.interval += timing.speedup_ci[0] > 1.0
                    series.pairs += timing.num_pairs
                series.wall_s = time.monotonic() - began_s
        return series

    def run(self, sizes_us: list[float], *, trials: int, gain_trials: int) -> list[Series]:
        """Run both kinds of trials at every size, each with its share of the time that is left."""
        waiting = [
            (size_us, steps, count)
            for size_us in sizes_us
            for steps, count in _kinds(size_us, trials=trials, gain_trials=gain_trials)
        ]
        elements = {size_us: self.size(size_us, steps=_steps(size_us)[0]) for size_us in sizes_us}
        found = []
        while waiting:
            left_s = max(self._until_s - time.monotonic(), 0.0)
            size_us, steps, count = waiting[0]
            share = count / max(sum(each[2] for each in waiting), 1)
            series = self.series(
                size_us,
                elements=elements[size_us],
                steps=steps,
                trials=count,
                limit_s=left_s * share,
            )
            self._show.write(f"{text_of(series)}\n")
            self._show.flush()
            found.append(series)
            waiting.pop(0)
        return found


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
    if settings["device"] not in FIRST_ELEMENTS:
        raise ValueError(f"device must be cpu or cuda, got {settings['device']}")
    return settings


def _kinds(size_us: float, *, trials: int, gain_trials: int) -> list[tuple[tuple[int, int], int]]:
    fewer, more = _steps(size_us)
    kinds = [((fewer, fewer), trials), ((fewer, more), gain_trials)]
    return [kind for kind in kinds if kind[1] > 0]


def _steps(size_us: float) -> tuple[int, int]:
    return FEW_STEPS if size_us <= SHORT_US else MANY_STEPS


def _source(name: str, *, steps: int, elements: int) -> str:
    return SOURCE.format(name=name, steps=steps, elements=elements)


def main() -> int:
    """Run the study and print it; exit status 1 where a rate is not as it must be."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--json"]
    as_json = len(arguments) < len(sys.argv) - 1
    try:
        settings = settings_of(arguments)
        sizes_us = [float(each) for each in settings["sizes"].split(",")]
        trials, gain_trials = int(settings["trials"]), int(settings["gain_trials"])
    except ValueError as error:
        print(f"aa_study: {error}", file=sys.stderr)
        return USAGE_EXIT
    began_s = time.monotonic()
    show = sys.stderr if as_json else sys.stdout
    with tempfile.TemporaryDirectory(prefix="kopt-aa-") as folder:
        study = Study(settings, folder=Path(folder), show=show)
        try:
            found = study.run(sizes_us, trials=trials, gain_trials=gain_trials)
        finally:
            study.close()
    verdict = verdict_of(found)
    report = {
        "device": describe("cuda" if settings["device"] == "cuda" else "cpu").name,
        "settings": settings,
        "series": [series.to_json() for series in found],
        "wall_s": time.monotonic() - began_s,
        **verdict,
    }
    show.write(
        f"equal kernels called faster: {words_of(report['false_wins_gate'])} by gate 4 (at most 1 "
        f"of 300), {words_of(report['false_wins_interval'])} by the interval; a gain of 3 % found: "
        f"{words_of(report['gain_found'])} (above 95 %)\n"
    )
    if as_json:
        print(json.dumps(report))
    return 0 if verdict["is_fair"] and verdict["is_keen"] else 1


if __name__ == "__main__":
    sys.exit(main())
