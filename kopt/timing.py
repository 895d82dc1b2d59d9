"""Timing arithmetic: samples to medians, paired ratios to a speed-up with its interval.

Pure: numbers in, numbers out. Who measures them, and how, is kopt.actors.
Source: shared protocol of DESIGN §5.4; KernelOPT's 1.03 is gate 4's threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Baseline = Literal["eager", "compile", "max_autotune"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What timing a correct candidate found, in microseconds of one call.

    Cold where the device allows it (CUDA: L2 flushed before each call).
    """

    time_us: float
    """Median of the candidate."""
    time_ci_us: tuple[float, float]
    """95 % interval of that median."""
    baseline: Baseline
    """What the speed-up is against: the faster of eager and compile unless a setting names one."""
    baseline_us: float
    """Median of the baseline, interleaved with the candidate."""
    speedup: float
    """baseline ÷ candidate, from interleaved pairs (not from the two medians)."""
    speedup_ci: tuple[float, float]
    """95 % interval of the speed-up."""
    eager_us: float
    """Median of the reference in eager mode."""
    compile_us: float | None
    """Median under torch.compile's defaults; None where it was off or failed."""
    max_autotune_us: float | None = None
    """Median under torch.compile(mode="max-autotune-no-cudagraphs"); None where it was off."""
    sol_us: float | None = None
    """Speed of light of the problem on this device; None where unknown."""
    num_pairs: int = 0
    """Interleaved pairs that the speed-up rests on."""

    @property
    def sol_share(self) -> float | None:
        """Speed of light ÷ time, 1 is the roof; None where unknown."""
        return None if self.sol_us is None else self.sol_us / self.time_us
