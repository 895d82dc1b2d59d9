"""What the command line of bench_scaling.py says."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from bench_scaling_problems import chosen_problems

Device = Literal["cpu", "cuda", "fake"]
DEFAULTS = {
    "device": "cpu",
    "gpus": "1,2",
    "problem": "",
    "problems": "16",
    "candidates": "6",
    "parts": "fleet,kill,noise",
    "limit_s": "600",
    "fleet_s": "120",
    "kill_s": "90",
    "races": "100",
    "races_s": "30",
    "size_us": "100",
    "pace_s": "0.5",
    "searches": "3",
    "out": "",
}
PARTS = ("fleet", "kill", "noise")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    device: Device
    gpus: tuple[int, ...]
    problems: tuple[str, ...]
    """Names; none for `num_problems` tiny ones."""
    num_problems: int
    candidates: int
    parts: frozenset[str]
    limit_s: float
    fleet_s: float
    kill_s: float
    races: int
    races_s: float
    size_us: float
    pace_s: float
    """That a pretended GPU takes for a verdict."""
    searches: int
    """For each pretended GPU."""
    out: Path | None


def parse(words: list[str]) -> Options:
    """Read the command line."""
    given = dict(word.split("=", 1) for word in words if "=" in word)
    settings = {**DEFAULTS, **given}
    expected = "expected words such as " + " ".join(f"{k}={v}" for k, v in DEFAULTS.items())
    try:
        options = Options(
            device=cast("Device", settings["device"]),
            gpus=tuple(int(word) for word in settings["gpus"].split(",")),
            problems=_names(settings),
            num_problems=int(settings["problems"]),
            candidates=int(settings["candidates"]),
            parts=frozenset(settings["parts"].split(",")),
            limit_s=float(settings["limit_s"]),
            fleet_s=float(settings["fleet_s"]),
            kill_s=float(settings["kill_s"]),
            races=int(settings["races"]),
            races_s=float(settings["races_s"]),
            size_us=float(settings["size_us"]),
            pace_s=float(settings["pace_s"]),
            searches=int(settings["searches"]),
            out=Path(settings["out"]) if settings["out"] else None,
        )
    except ValueError:
        sys.exit(f"{expected}, found {' '.join(words)}")
    is_known = options.device in get_args(Device) and options.parts <= set(PARTS)
    if len(given) != len(words) or set(given) - set(DEFAULTS) or not is_known:
        sys.exit(f"{expected}, found {' '.join(words)}")
    if min(options.gpus) < 1 or options.candidates < 2 or options.candidates % 2:
        sys.exit("expected gpus of 1 or more and an even number of candidates")
    if options.device == "fake" and any(count % 2 for count in options.gpus):
        sys.exit("device=fake: expected gpus in nodes of two, such as gpus=2,4,8")
    return options


def _names(settings: dict[str, str]) -> tuple[str, ...]:
    if settings["problem"]:
        return tuple(settings["problem"].split(","))
    return () if settings["device"] != "cuda" else chosen_problems(int(settings["problems"]))
