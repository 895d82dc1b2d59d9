"""Verdict to reward: the number that the tree backs up (KernelPro §3.3.3, Eq. 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from kopt.errors import ConfigError
from kopt.registry import Registry
from kopt.timing import Timing
from kopt.tools.energy_reward import TIE, energy_aware_reward
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

LOG_SPEEDUP: Literal["log_speedup"] = "log_speedup"
"""The kind of our own rule."""
REWARDS: Registry[float] = Registry("reward", entry_point_group="kopt.rewards")
"""Rules of others, called with (verdict, RewardRule): a pure function, so that trees replay."""

RewardBaseline = Literal["best", "eager", "compile", "given"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRule:
    """How a verdict becomes a number."""

    kind: str = "log_speedup"
    """Which rule: ours, or one of `REWARDS`."""
    floor: float | None = -1.9
    """Least reward of a correct candidate; None is the paper, where a correct kernel slower than
    0.135x ranks below a wrong one."""
    baseline: RewardBaseline = "best"
    """What ln(speedup) is against: `best` is the faster of eager and compile; KernelPro's arms
    use `eager`, and for a kernel in production `given`: the one that the problem comes with."""
    energy_epsilon: float = 0.0
    """Weight of ln(energy reduction), >= 0; 0 leaves energy out."""


def with_energy(verdict: Verdict, reduction: float | None) -> Verdict:
    """Return the verdict with what its candidate saves of the reference's energy, if it is known.

    Args:
        verdict: of any kind; only a correct one changes.
        reduction: reference's energy ÷ candidate's, above 0; None: not known.
    """
    if reduction is None or not isinstance(verdict, Correct):
        return verdict
    return replace(verdict, energy_reduction=reduction)


def speedup_over(timing: Timing, baseline: RewardBaseline) -> float:
    """Return the speed-up over the named baseline.

    Where compile is unknown it is over `eager`; where a problem comes with no kernel, `best`.
    """
    match baseline:
        case "best":
            return timing.speedup
        case "eager":
            return timing.eager_us / timing.time_us
        case "compile":
            return (timing.compile_us or timing.eager_us) / timing.time_us
        case "given":
            if timing.given_us is None or timing.baseline == "given":
                return timing.speedup
            return timing.given_us / timing.time_us
        case _:
            assert_never(baseline)


def reward(verdict: Verdict, rule: RewardRule) -> float:
    """Return the reward of a verdict, under the rule's kind.

    Raises:
        ConfigError: no rule of that kind, or it gives no finite number.
    """
    if rule.kind == LOG_SPEEDUP:
        return log_speedup(verdict, rule)
    value = REWARDS.get(rule.kind)(verdict, rule)
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"reward.kind={rule.kind}: expected a finite number, found {value!r:.80}")
    return float(value)


def log_speedup(verdict: Verdict, rule: RewardRule) -> float:
    """Return the reward of a verdict under our rule.

    r = ln(speedup) if correct, but at least `rule.floor`; -2 for a wrong or cheating candidate;
    -3 for one that crashed, ran out of time or did not compile. Where energy counts, the first is
    ln(speedup) + ε · ln(energy reduction), the second term bounded to half a tie of speed.

    Source: KernelPro Eq. 1 and Eq. 3; the floor and the bound are ours.
    """
    match verdict:
        case Correct(timing=timing, energy_reduction=reduction):
            speedup = speedup_over(timing, rule.baseline)
            value = math.log(speedup)
            if rule.energy_epsilon > 0 and reduction is not None:
                value = energy_aware_reward(
                    speedup,
                    energy_reduction=reduction,
                    epsilon=rule.energy_epsilon,
                    # Eq. 3 is lexicographic only with a bound, whatever its weight.
                    log_bound=0.5 * TIE / rule.energy_epsilon,
                )
            return value if rule.floor is None else max(value, rule.floor)
        case Incorrect() | Cheated():
            return INCORRECT_REWARD
        case CompileFailed() | Crashed() | TimedOut():
            return FAILED_REWARD
        case _:
            assert_never(verdict)
