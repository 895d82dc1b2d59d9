"""Verdict to reward: the number that the tree backs up (KernelPro §3.3.3, Eq. 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, assert_never

from kopt.timing import Timing
from kopt.verdict import (
    Cheated,
    CompileFailed,
    Correct,
    Crashed,
    Incorrect,
    TimedOut,
    Verdict,
)

INCORRECT_REWARD = -2.0
FAILED_REWARD = -3.0

RewardBaseline = Literal["best", "eager", "compile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRule:
    """How a verdict becomes a number."""

    floor: float | None = -1.9
    """Least reward of a correct candidate; None is the paper, where a correct kernel slower than
    0.135x ranks below a wrong one."""
    baseline: RewardBaseline = "best"
    """What ln(speedup) is against: `best` is the faster of eager and compile; KernelPro's arms
    use `eager`."""


def speedup_over(timing: Timing, baseline: RewardBaseline) -> float:
    """Return the speed-up over the named baseline; over `eager` where compile is unknown."""
    match baseline:
        case "best":
            return timing.speedup
        case "eager":
            return timing.eager_us / timing.time_us
        case "compile":
            return (timing.compile_us or timing.eager_us) / timing.time_us
        case _:
            assert_never(baseline)


def reward(verdict: Verdict, rule: RewardRule) -> float:
    """Return the reward of a verdict.

    r = ln(speedup) if correct, but at least `rule.floor`; -2 for a wrong or cheating candidate;
    -3 for one that crashed, ran out of time or did not compile.

    Source: KernelPro Eq. 1; the floor is ours.
    """
    match verdict:
        case Correct(timing=timing):
            value = math.log(speedup_over(timing, rule.baseline))
            return value if rule.floor is None else max(value, rule.floor)
        case Incorrect() | Cheated():
            return INCORRECT_REWARD
        case CompileFailed() | Crashed() | TimedOut():
            return FAILED_REWARD
        case _:
            assert_never(verdict)
