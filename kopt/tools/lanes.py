"""Lanes that do nothing: divergent branches, and blocks that do not fill their warps."""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kopt.finding import Severity
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.view import View

ACTIVE_THREADS = "smsp__thread_inst_executed_per_inst_executed.ratio"
UNIFORM_BRANCHES = "smsp__sass_average_branch_targets_threads_uniform.pct"
WARP = 32.0

_STALLS = frozenset(
    f"stall:{reason}"
    for reason in (
        *("branch_resolving", "short_scoreboard", "long_scoreboard", "math_pipe_throttle"),
        *("mio_throttle", "lg_throttle", "barrier", "no_instruction"),
    )
)


@ToolRegistry.register
class Divergence(ProfilingTool):
    """Few of a warp's 32 lanes are active in an average instruction.

    NVIDIA's rule asks below 24; from half a warp on it is what limits, whatever else stalls.
    """

    name = "divergence"
    title = "Idle lanes"
    source = "ncu"
    required = (ACTIVE_THREADS,)
    optional = (UNIFORM_BRANCHES,)
    thresholds: ClassVar[Mapping[str, float]] = {
        "threads_below": 24.0,
        "threads_high_below": 16.0,
        "threads_critical_below": 8.0,
    }
    affinity = ("compute", "latency", "mixed")
    priority = 50

    def trigger(self, view: View) -> bool:
        return 0.0 < view.need(ACTIVE_THREADS) < self.thresholds["threads_below"]

    def analyze(self, view: View) -> Analysis:
        active, uniform = view.need(ACTIVE_THREADS), view.get(UNIFORM_BRANCHES)
        severity: Severity = "medium"
        if active < self.thresholds["threads_high_below"]:
            severity = "high"
        if active < self.thresholds["threads_critical_below"]:
            severity = "critical"
        observed = {"active_threads": active}
        if uniform is not None:
            observed["uniform_branches_pct"] = uniform
        return Analysis(
            severity=severity,
            summary=f"{active:.1f} of a warp's 32 lanes are active in an average instruction.",
            root_cause="Branches that diverge within a warp, loops of different lengths, or blocks "
            "that are no multiple of 32 threads.",
            recommendations=(
                "Predication: compute both sides of a short branch and select.",
                "Give the lanes of a warp work of one kind and length (sort, pack, transpose).",
                "Blocks of a multiple of 32 threads; idle threads share the loop of the others.",
            ),
            expected_improvement=f"up to {WARP / active:.1f}x of the instructions",
            observed=observed,
            # A few lanes a request touch few bytes of each sector: no fault of the layout.
            explains=_STALLS | {"global_access"} if severity != "medium" else frozenset(),
        )
