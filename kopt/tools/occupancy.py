"""Resident warps, and blocks over multiprocessors: too few, or in a bad number."""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from kopt.finding import Severity
from kopt.tools.guards import GMMA, ISSUE_ACTIVE, ROOFS, is_near_roof, uses_wgmma
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.view import View

LIMITS: dict[str, str] = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
}
"""What limits the resident blocks of a multiprocessor, to its counter, in blocks."""
ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
POSSIBLE = "sm__maximum_warps_per_active_cycle_pct"
WAVES = "launch__waves_per_multiprocessor"
GRID = "launch__grid_size"


def binding_limit(view: View) -> tuple[str, ...]:
    """Return what limits the resident blocks most; several where they are equal.

    Raises:
        MissingFigure: one of the limits is unknown.
    """
    blocks = {limit: view.need(counter) for limit, counter in LIMITS.items()}
    least = min(blocks.values())
    return tuple(limit for limit, value in blocks.items() if value == least)


@ToolRegistry.register
class OccupancyLimiter(ProfilingTool):
    """Too few warps are resident and the schedulers are idle, or too few blocks were launched."""

    name = "occupancy_limiter"
    title = "Too few resident warps"
    source = "ncu"
    required = (GRID,)
    optional = (
        *(ACHIEVED, POSSIBLE, ISSUE_ACTIVE, WAVES, "gpu.num_sms"),
        *(*LIMITS.values(), *ROOFS, GMMA, "sass:HGMMA", "sass:QGMMA"),
    )
    thresholds: ClassVar[Mapping[str, float]] = {
        "achieved_below_pct": 25.0,
        "critical_below_pct": 10.0,
        "gap_pct": 20.0,
        "issue_active_below": 0.6,
    }
    affinity = ("memory", "latency", "mixed")
    priority = 72

    def trigger(self, view: View) -> bool:
        if is_near_roof(view):
            return False
        if _used_pct(view) < 100.0:
            return True
        if uses_wgmma(view):
            return False
        starved = view.need(ISSUE_ACTIVE) < self.thresholds["issue_active_below"]
        return starved and self._is_low(view)

    def analyze(self, view: View) -> Analysis:
        used_pct, num_sms = _used_pct(view), view.get("gpu.num_sms")
        if used_pct < 100.0 and num_sms:
            grid = view.need(GRID)
            return Analysis(
                severity=self._severity(used_pct, otherwise="medium"),
                summary=f"{grid:.0f} block(s) for {num_sms:.0f} multiprocessors: "
                f"{100 - used_pct:.0f} % of them have nothing to do.",
                root_cause="The grid is smaller than the GPU.",
                recommendations=(
                    "Split the reduction (split-K, two passes or atomics) over more blocks.",
                    "Smaller tiles, so that the same work makes more blocks.",
                    "More than one independent problem in one launch.",
                ),
                expected_improvement=f"up to {100 / max(used_pct, 1.0):.0f}x"
                if used_pct < 50
                else "1.2-2x",
                observed={"blocks": grid, "multiprocessors": num_sms},
                cause="occupancy:grid",
                explains=frozenset({"stall:long_scoreboard", "stall:barrier", "barrier_stall"})
                if used_pct < self.thresholds["achieved_below_pct"]
                else frozenset(),
            )
        achieved = view.need(ACHIEVED)
        low = achieved < self.thresholds["achieved_below_pct"]
        limits = binding_limit(view)
        possible = view.get(POSSIBLE)
        limit = "load imbalance between blocks" if not low else " and ".join(limits)
        possibly = "" if possible is None else f" of {possible:.0f} % possible"
        observed = {"occupancy_pct": achieved, "issue_active": view.need(ISSUE_ACTIVE)}
        if possible is not None:
            observed["possible_pct"] = possible
        return Analysis(
            severity=self._severity(achieved, otherwise="medium"),
            summary=f"{achieved:.0f} % of the warps that a multiprocessor holds are resident"
            f"{possibly}, and the schedulers issue in "
            f"{100 * view.need(ISSUE_ACTIVE):.0f} % of the cycles. Limit: {limit}.",
            root_cause="Too few warps to cover the latency of loads."
            if low
            else "Blocks end at different times, and warps are resident in part of the time only.",
            recommendations=_fixes(limits, low=low),
            expected_improvement="1.2-5x" if low else "1.1-1.3x",
            observed=observed,
            cause=f"occupancy:{limits[0]}" if low else "occupancy:gap",
            explains=frozenset({"stall:long_scoreboard"}) if low else frozenset(),
        )

    def _is_low(self, view: View) -> bool:
        achieved = view.need(ACHIEVED)
        if achieved < self.thresholds["achieved_below_pct"]:
            binding_limit(view)  # unknown limits keep it silent: it could not say why
            return True
        possible = view.get(POSSIBLE)
        return possible is not None and possible - achieved > self.thresholds["gap_pct"]

    def _severity(self, pct: float, *, otherwise: Severity) -> Severity:
        if pct < self.thresholds["critical_below_pct"]:
            return "critical"
        return "high" if pct < self.thresholds["achieved_below_pct"] else otherwise


@ToolRegistry.register
class WaveQuantization(ProfilingTool):
    """The last wave of blocks is but partly full, and there are few waves.

    NVIDIA's launch-configuration rule: ceil(w) / w - 1 > 0.2 and w < 5, for w waves, from one on.
    """

    name = "wave_quantization"
    title = "The last wave is partly empty"
    source = "ncu"
    required = (WAVES, GRID)
    optional = ROOFS
    thresholds: ClassVar[Mapping[str, float]] = {"tail_share": 0.2, "waves_below": 5.0}
    affinity = ("compute", "latency", "mixed")
    priority = 55

    def trigger(self, view: View) -> bool:
        waves = view.need(WAVES)
        if not 1.0 <= waves < self.thresholds["waves_below"] or is_near_roof(view):
            return False
        return math.ceil(waves) / waves - 1.0 > self.thresholds["tail_share"]

    def analyze(self, view: View) -> Analysis:
        waves, grid = view.need(WAVES), view.need(GRID)
        gain = math.ceil(waves) / waves
        return Analysis(
            severity="medium",
            summary=f"{grid:.0f} blocks make {waves:.2f} waves: the last one fills "
            f"{100 * (waves - math.floor(waves)):.0f} % of the GPU.",
            root_cause="The number of blocks is little above a whole number of waves.",
            recommendations=(
                "A persistent kernel: as many blocks as multiprocessors hold, each taking tiles.",
                "Another tile size, so that the blocks make whole waves.",
                "Split the tiles of the last wave along K (stream-K).",
            ),
            expected_improvement=f"up to {gain:.2f}x",
            observed={"waves": waves, "blocks": grid},
        )


def _used_pct(view: View) -> float:
    """Per cent of the multiprocessors that get a block; 100 where their number is unknown."""
    num_sms = view.get("gpu.num_sms")
    return 100.0 if not num_sms else min(100.0, 100.0 * view.need(GRID) / num_sms)


def _fixes(limits: tuple[str, ...], *, low: bool) -> tuple[str, ...]:
    if not low:
        return (
            "Equal work for each block; a persistent kernel that takes tiles as it goes.",
            "Longer blocks where each ends within a few microseconds.",
        )
    first = {
        "registers": "Fewer registers a thread: a bound (__launch_bounds__, maxnreg), a smaller "
        "tile, more warps for the same tile.",
        "shared memory": "Less shared memory a block: smaller tiles, fewer stages, reductions by "
        "warp shuffles in place of shared memory.",
        "warps": "Blocks whose warps divide the multiprocessor's: 128 or 256 threads.",
        "blocks": "Larger blocks: 128 to 256 threads.",
    }
    return (
        *(first[limit] for limit in limits),
        "Two to four independent loads a thread, so that fewer warps suffice.",
    )
