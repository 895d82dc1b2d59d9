"""A/A study: how often an equal kernel is called faster, and how often a true 3 % gain is found.

    python scripts/aa_study.py device=cuda trials=300 gain_trials=100 limit_s=300 --json

A trial is one race as an evaluation runs it (kopt.actors.supervisor.duel): candidate and baseline
in children of their own, interleaved, with every check of clocks and outputs, stopped by the racing
rule. Two processes of the same code may differ for good, so after a few races (`races_each`) both
are ended and new ones loaded and verified; how far pairs of processes lie apart is printed. Kernels
are one launch or many (aa_study_kernels.py), with as many elements as a call of the microseconds
wanted has: an equal candidate does the reference's work, and where a gain is to be found the
reference does 3 % more.

Faster is what an evaluation claims: its interval is above 1 (`interval`). Those of them that pass
gate 4, a speed-up of 1.03 and more, are counted beside (`gate`); a true gain of 3 % is on its edge.
Rates are printed with their Clopper-Pearson intervals of 95 %, which take races for independent.
`refused` are races whose clocks did not agree, and count as not found. What `limit_s` leaves undone
is missing from the counts, and the study then does not show what it must.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO

from aa_study_counts import Series, lines_of, verdict_of
from aa_study_kernels import Kind
from aa_study_races import Study

from kopt.actors.config import TimingConfig
from kopt.actors.devices.base import DeviceName, describe

SETTINGS: dict[str, str] = {
    "device": "cpu",
    "trials": "300",
    "gain_trials": "100",
    "series": "single:100,single:1000,launches:100",
    "limit_s": "360",
    "races_each": "4",
    "max_pairs": str(TimingConfig().max_pairs),
    "secret": "1",
}
USAGE_EXIT = 2


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
    if settings["device"] not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu or cuda, got {settings['device']}")
    return settings


def races_of(settings: dict[str, str], *, show: TextIO) -> list[Series]:
    """Run the study.

    Raises:
        ConfigError: the device is not here.
        ValueError: a setting is no number.
    """
    wanted = [_wanted(each) for each in settings["series"].split(",")]
    trials, gain_trials = int(settings["trials"]), int(settings["gain_trials"])
    numbers = {name: int(settings[name]) for name in ("max_pairs", "races_each", "secret")}
    limit_s = float(settings["limit_s"])
    with tempfile.TemporaryDirectory(prefix="kopt-aa-") as folder:
        study = Study(
            device=_device(settings), limit_s=limit_s, folder=Path(folder), show=show, **numbers
        )
        try:
            return study.run(wanted, trials=trials, gain_trials=gain_trials)
        finally:
            study.close()


def _wanted(text: str) -> tuple[Kind, float]:
    kind, _, size_us = text.partition(":")
    if kind not in ("single", "launches"):
        raise ValueError(f"expected single:MICROSECONDS or launches:MICROSECONDS, got {text}")
    return kind, float(size_us)


def _device(settings: dict[str, str]) -> DeviceName:
    return "cuda" if settings["device"] == "cuda" else "cpu"


def main() -> int:
    """Run the study and print it; exit status 1 where a rate is not as it must be."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--json"]
    as_json = len(arguments) < len(sys.argv) - 1
    show = sys.stderr if as_json else sys.stdout
    began_s = time.monotonic()
    try:
        settings = settings_of(arguments)
        found = races_of(settings, show=show)
    except ValueError as error:
        print(f"aa_study: {error}", file=sys.stderr)
        return USAGE_EXIT
    verdict = verdict_of(found)
    report = {
        "device": describe(_device(settings)).name,
        "settings": settings,
        "series": [series.to_json() for series in found],
        "wall_s": time.monotonic() - began_s,
        **verdict.to_json(),
    }
    for line in lines_of(verdict):
        show.write(f"{line}\n")
    if as_json:
        print(json.dumps(report))
    return 0 if verdict.holds else 1


if __name__ == "__main__":
    sys.exit(main())
