"""Energy of one call from windows of a counter: idle subtracted, ABBA with the baseline, drift out.

Pure: windows in, energies out. The counter is refreshed ten times a second and samples part of the
time (mean error 35 % of one reading on A100 and H100), so that a window lasts a second or more, and
medians over pairs of windows are told. Clocks are left alone: a pair of windows whose clocks differ
by more than 1 % is no pair. Source: KernelPro App. I.1; profiling notes §E.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from statistics import median

from kopt.errors import ProfileFailed

LEAST_WINDOW_S = 1.0
CLOCK_DRIFT = 0.01
"""Relative difference of two windows' clocks above which they are not compared."""
LEAST_PAIRS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One stretch of calls, back to back."""

    arm: str
    """`candidate` or `baseline`."""
    calls: int
    seconds: float
    energy_mj: float
    """By the counter, idle draw included."""
    clock_mhz: float
    """Mean clock of the multiprocessors meanwhile."""

    def per_call_mj(self, *, idle_w: float) -> float:
        """Return the energy of one call without the idle draw, millijoules."""
        return (self.energy_mj - 1e3 * idle_w * self.seconds) / self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyFigures:
    """What was measured; clocks were not locked."""

    candidate_mj: float
    """Of one call, without the idle draw; the median."""
    baseline_mj: float
    reduction: float
    """Baseline ÷ candidate, the median over pairs."""
    num_pairs: int
    rejected: int
    """Pairs whose clocks had drifted apart."""
    idle_w: float

    def words(self) -> str:
        """Return what a person is told."""
        return (
            f"{self.candidate_mj:.4g} mJ a call without the idle draw of {self.idle_w:.3g} W, the "
            f"reference {self.baseline_mj:.4g} mJ: {self.reduction:.3g}x less ({self.num_pairs} "
            f"pairs of windows, {self.rejected} rejected for their clocks; clocks not locked)"
        )


def figures_from_report(report: Mapping[str, object]) -> EnergyFigures:
    """Return the figures in the report of a process that may lie.

    Raises:
        ProfileFailed: they are none.
    """
    names = [each.name for each in fields(EnergyFigures)]
    values = [report.get(name) for name in names]
    sane = all(
        isinstance(value, int | float) and math.isfinite(value) and value >= 0 for value in values
    )
    if not sane or not report["reduction"]:
        raise ProfileFailed("energy: the profiled process reported no figures of energy")
    return EnergyFigures(**dict(zip(names, values, strict=True)))  # type: ignore[arg-type] # numbers


def energy_figures(windows: Sequence[Window], *, idle_w: float) -> EnergyFigures:
    """Return the energies of both arms from windows that alternate (A B B A …).

    Args:
        windows: in order of time; neighbours of different arms make a pair, each window once.
        idle_w: draw of the idle device with a context alive, watts.

    Raises:
        ProfileFailed: a window is too short, or too few pairs are left.
    """
    short = [window for window in windows if window.seconds < LEAST_WINDOW_S or window.calls < 1]
    if short:
        raise ProfileFailed(
            f"energy: a window of {short[0].seconds:.3g} s; expected {LEAST_WINDOW_S:g} s or more"
        )
    pairs: list[tuple[float, float]] = []
    rejected, used = 0, -1
    for at, (first, second) in enumerate(pairwise(windows)):
        if at <= used or first.arm == second.arm:
            continue
        used = at + 1
        if abs(first.clock_mhz / second.clock_mhz - 1.0) > CLOCK_DRIFT:
            rejected += 1
            continue
        by_arm = {window.arm: window.per_call_mj(idle_w=idle_w) for window in (first, second)}
        pairs.append((by_arm["candidate"], by_arm["baseline"]))
    kept = [pair for pair in pairs if min(pair) > 0]
    if len(kept) < LEAST_PAIRS:
        raise ProfileFailed(
            f"energy: {len(kept)} pairs of windows are of use, expected {LEAST_PAIRS} or more "
            f"({rejected} had clocks apart by > {CLOCK_DRIFT:.0%}); measure longer, or alone"
        )
    return EnergyFigures(
        candidate_mj=median(pair[0] for pair in kept),
        baseline_mj=median(pair[1] for pair in kept),
        reduction=median(baseline / candidate for candidate, baseline in kept),
        num_pairs=len(kept),
        rejected=rejected,
        idle_w=idle_w,
    )
