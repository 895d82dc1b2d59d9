"""What is left: is the call at the problem's speed of light, and does it move bytes it need not."""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.traffic import DRAM_READ, DRAM_WRITE, dram_bytes
from kopt.tools.view import MissingFigure, View

SOL_US = "roofline.sol_us"
REACHABLE_US = "roofline.reachable_us"
TIME_US = "evidence.time_us"
E2E = "timeline.e2e_us"
BYTES = "roofline.bytes"


@ToolRegistry.register
class SolReached(ProfilingTool):
    """The call is within 15 % of the speed of light of the problem: a reason to stop.

    The time is the evaluation's. Without it, the end-to-end time of the profiled call is taken,
    which is longer and so never says this falsely. A time below the speed of light says that the
    roofline does not describe the call (data in cache, another precision), and nothing is said.
    """

    name = "sol_reached"
    title = "Speed of light reached"
    source = "roofline"
    scope = "call"
    partition = "headroom"
    required = (SOL_US,)
    optional = (TIME_US, E2E, REACHABLE_US)
    thresholds: ClassVar[Mapping[str, float]] = {"times_sol": 1.15}
    priority = 95

    def trigger(self, view: View) -> bool:
        time_us, sol_us = _time_us(view), view.need(SOL_US)
        reachable_us = view.get(REACHABLE_US) or sol_us
        if not 0.0 < sol_us <= time_us:
            return False
        return time_us / reachable_us <= self.thresholds["times_sol"]

    def analyze(self, view: View) -> Analysis:
        time_us, sol_us = _time_us(view), view.need(SOL_US)
        return Analysis(
            severity="low",
            summary=f"{time_us:.1f} us are {100 * sol_us / time_us:.0f} % of the problem's speed "
            f"of light ({sol_us:.1f} us).",
            root_cause="The bytes or FLOPs that the problem asks for take this long.",
            recommendations=("Stop here, or change the algorithm: fewer bytes, fewer FLOPs.",),
            expected_improvement=f"at most {time_us / sol_us:.2f}x",
            observed={"time_us": time_us, "sol_us": sol_us},
        )


@ToolRegistry.register
class AlgorithmicWaste(ProfilingTool):
    """The call moves more bytes through DRAM than the problem asks for."""

    name = "algorithmic_waste"
    title = "More traffic than the problem needs"
    source = "ncu"
    scope = "call"
    required = (BYTES,)
    optional = (DRAM_READ, DRAM_WRITE, "kernel.launches")
    thresholds: ClassVar[Mapping[str, float]] = {
        "ratio": 1.5,
        "ratio_high": 3.0,
        "excess_least_bytes": 4e6,
    }
    priority = 89

    def trigger(self, view: View) -> bool:
        moved = dram_bytes(view.evidence)
        if moved is None:
            raise MissingFigure(DRAM_READ)
        compulsory = view.need(BYTES)
        # Under 4 MB, about a microsecond, the excess is tables, descriptors and cache lines.
        excess = moved - compulsory >= self.thresholds["excess_least_bytes"]
        return excess and compulsory > 0 and moved / compulsory > self.thresholds["ratio"]

    def analyze(self, view: View) -> Analysis:
        moved, compulsory = dram_bytes(view.evidence) or 0.0, view.need(BYTES)
        ratio = moved / compulsory
        return Analysis(
            severity="high" if ratio > self.thresholds["ratio_high"] else "medium",
            summary=f"The call moves {moved / 1e6:.1f} MB through DRAM, {ratio:.1f} times the "
            f"{compulsory / 1e6:.1f} MB of its inputs and outputs.",
            root_cause="Intermediates go through DRAM, or data is read again.",
            recommendations=(
                "Fuse, so that intermediates stay in registers and shared memory.",
                "Rewrite the algebra, so that the intermediate does not arise.",
                "Keep what is read again within L2: tiles, and an order of blocks that shares "
                "them.",
            ),
            expected_improvement=f"up to {ratio:.1f}x where memory is the limit",
            observed={"dram_bytes": moved, "compulsory_bytes": compulsory, "ratio": ratio},
            # Scattered sectors and intermediates are counted here too: the same bytes twice.
            explains=frozenset({"kernel_fragmentation"}),
        )


def _time_us(view: View) -> float:
    time_us = view.get(TIME_US)
    return view.need(E2E) if time_us is None and view.get(E2E) is not None else view.need(TIME_US)
