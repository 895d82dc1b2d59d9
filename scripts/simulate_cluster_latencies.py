"""What the cluster simulator draws its seconds from: recorded evaluations and published figures.

Recorded: `data/measured/cpu_candidate_seconds.json`, the stages of real candidates through kopt's
evaluator on a CPU; rows are drawn whole, so that stages stay together as they were. The object that
bench_throughput.py prints, from a GPU, may take its place.

Published, each with its source below. None of them was measured with kopt.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "data" / "measured" / "cpu_candidate_seconds.json"

ANSWER_5_S = 8.8
"""One in twenty answers is as fast: openevolve, 14.9 s an iteration of which 6.1 s evaluation (a
user's log, its issue 399)."""
ANSWER_95_S = 159.0
"""One in twenty is slower: CudaForge, ten rounds in 26.5 min, all of a round counted as writing."""
ANSWER_MOST_S = 900.0
"""KernelOPT gives a call no longer (its Table 11)."""

# The least, then each 5 % up to the most.
_LOWER_HALF = (0.1, 0.1, 0.2, 0.2, 0.4, 0.5, 0.5, 0.6, 0.7, 0.7, 0.8)
_UPPER_HALF = (0.9, 1.0, 1.2, 1.5, 1.8, 2.0, 2.7, 3.5, 6.5, 33.2)
REFERENCE_COMPILE_S = (*_LOWER_HALF, *_UPPER_HALF)
"""Seconds of `torch.compile` and the first call: quantiles, 5 % apart, of 239 KernelBench problems
on one H200 (torch 2.11). A device pays it when it takes up a problem."""
_Z_95 = 1.6449


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The stages of one candidate that was really judged, in seconds."""

    kind: str
    """Of its verdict."""
    built_s: float
    """On a build worker; 0 where nothing was built or a cache had it."""
    held_s: float
    """On the device lane: forked, verified, timed, ended; what is paid once a problem left out."""
    prepared_s: float
    """On the device lane, to take up the problem; 0 where it had it."""


class Latencies:
    """Draws seconds. The same key draws the same, whatever was drawn before."""

    def __init__(self, rows: list[Recorded], *, seed: int) -> None:
        """Take what was recorded; `seed` tells one simulation from another."""
        self._rows = rows
        self._by_kind: dict[str, list[Recorded]] = {}
        for row in rows:
            self._by_kind.setdefault(row.kind, []).append(row)
        self._seed = seed
        self._mean_log = (math.log(ANSWER_5_S) + math.log(ANSWER_95_S)) / 2
        self._spread_log = math.log(ANSWER_95_S / ANSWER_5_S) / (2 * _Z_95)

    def answer_s(self, key: str) -> float:
        """Return the seconds in which a model writes one answer: log-normal, cut at its limit."""
        drawn = self._random(key, "answer").lognormvariate(self._mean_log, self._spread_log)
        return min(drawn, ANSWER_MOST_S)

    def candidate(self, key: str, *, kind: str) -> Recorded:
        """Return a recorded candidate of that verdict, or of any where none was recorded."""
        rows = self._by_kind.get(kind, self._rows)
        return rows[int(self._random(key, "candidate").random() * len(rows))]

    def prepare_s(self, key: str) -> float:
        """Return the seconds in which a device takes up a problem."""
        place = self._random(key, "prepare").random() * (len(REFERENCE_COMPILE_S) - 1)
        low = int(place)
        between = place - low
        below_s, above_s = REFERENCE_COMPILE_S[low : low + 2]
        prepared = sorted(row.prepared_s for row in self._rows)
        return prepared[len(prepared) // 2] + (1 - between) * below_s + between * above_s

    def _random(self, key: str, what: str) -> random.Random:
        return random.Random(f"{self._seed} {what} {key}")


def read_recorded(path: Path) -> list[Recorded]:
    """Return the rows of a recording: each candidate's stages, as bench_throughput.py writes them.

    Raises:
        ValueError: the file holds none.
    """
    text = json.loads(path.read_text(encoding="utf-8"))
    recorded = text.get("kopt_cold", text).get("each", [])
    rows = [_row(each["kind"], each["timeline_s"]) for each in recorded]
    if not rows:
        raise ValueError(f"{path}: expected `each` with `kind` and `timeline_s`, found none")
    return rows


def _row(kind: str, timeline_s: dict[str, float]) -> Recorded:
    apart = ("built", "prepared")
    held_s = sum(
        value
        for name, value in timeline_s.items()
        if name not in apart and not name.endswith("queued")
    )
    return Recorded(
        kind=kind,
        built_s=timeline_s.get("built", 0.0),
        held_s=held_s,
        prepared_s=timeline_s.get("prepared", 0.0),
    )
