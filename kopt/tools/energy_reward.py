"""Energy as the second objective: KernelPro's lexicographic reward (Eq. 3)."""

from __future__ import annotations

import math

EPSILON = 0.01
"""Weight of energy. The paper says only that it is far below 1."""
TIE = 0.01
"""Speed-ups whose logarithms differ by less than this are equal: timing noise."""
DOMINATED = 0.5 * TIE / EPSILON
"""Bound of |ln(energy reduction)| under which energy overturns no speed-up above a tie."""


def energy_aware_reward(
    speedup: float,
    *,
    energy_reduction: float | None,
    epsilon: float = EPSILON,
    log_bound: float | None = None,
) -> float:
    """Return the reward of a correct candidate: r = ln(speedup) + ε · ln(energy reduction).

    Eq. 3 as published is not lexicographic without a bound: at ε = 0.01 a tenth of the energy
    outweighs 2 % of speed. With `log_bound=DOMINATED` it is, for differences above a tie.

    Args:
        speedup: baseline time ÷ candidate time, above 0.
        energy_reduction: baseline energy ÷ candidate energy, above 0; None: not known, no term.
        epsilon: weight of energy, at least 0.
        log_bound: bound of |ln(energy reduction)|; None: none, as published.

    Raises:
        ValueError: an argument is out of its range.
    """
    if not speedup > 0 or not math.isfinite(speedup):
        raise ValueError(f"speedup must be above 0, got {speedup:g}")
    if epsilon < 0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon:g}")
    if energy_reduction is None:
        return math.log(speedup)
    if not energy_reduction > 0 or not math.isfinite(energy_reduction):
        raise ValueError(f"energy_reduction must be above 0, got {energy_reduction:g}")
    saved = math.log(energy_reduction)
    if log_bound is not None:
        saved = max(-log_bound, min(log_bound, saved))
    return math.log(speedup) + epsilon * saved
