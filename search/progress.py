"""Progress: how far a candidate came, and how nearly right it was.

A policy that repairs wants to know which failure is closest to success (KernelPro App. E). The
verdict says it: the stage at which the candidate failed, and, where its output was compared, the
size of the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, assert_never, get_args

from kopt.verdict import (
    Cheated,
    CompileFailed,
    Correct,
    Crashed,
    Incorrect,
    TimedOut,
    Verdict,
)

Stage = Literal[
    "cheated",
    "static",
    "build",
    "import",
    "construct",
    "correctness",
    "compared",
    "timing",
    "correct",
]
"""Where a candidate ended, the furthest last. A cheat comes first: there is no honest kernel in it
to repair. `correctness`: it died while it ran. `compared`: it ran to its end, and something about
its output is wrong. `timing`: its output was right, and it died while it was timed."""

STAGES: tuple[Stage, ...] = get_args(Stage)
_RANKS = {stage: rank for rank, stage in enumerate(STAGES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one candidate came."""

    stage: Stage | None = None
    """None where it is not known: told to an earlier version of this package."""
    error_size: float | None = None
    """‖out - ref64‖₂ / ‖ref64‖₂ of a wrong output, >= 0; None where no values were compared, or
    where it is not finite."""

    @property
    def rank(self) -> int:
        """The stage as a number, higher for further; -1 where it is not known."""
        return -1 if self.stage is None else _RANKS[self.stage]


UNKNOWN = Progress()
"""Nothing is known."""


def progress_of(verdict: Verdict) -> Progress:
    """Return how far a candidate came.

    A stage of a name that is not known here counts as `build` for a candidate that never became a
    callable, and as `correctness` for one that ran.
    """
    match verdict:
        case Correct():
            return Progress(stage="correct")
        case Cheated():
            return Progress(stage="cheated")
        case Incorrect(error=error):
            size = None if error is None or not math.isfinite(error.rel_norm) else error.rel_norm
            return Progress(stage="compared", error_size=size)
        case CompileFailed(stage=name):
            return Progress(stage=_stage(name, otherwise="build"))
        case Crashed(stage=name) | TimedOut(stage=name):
            return Progress(stage=_stage(name, otherwise="correctness"))
        case _:
            assert_never(verdict)


def _stage(name: str, *, otherwise: Stage) -> Stage:
    return next((stage for stage in STAGES if stage == name), otherwise)
