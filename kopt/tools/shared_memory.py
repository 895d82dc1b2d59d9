"""Shared memory: lanes that hit different rows of one bank."""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kopt.tools.counters import stall_counter
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.view import View

SHORT_SCOREBOARD = stall_counter("short_scoreboard")
MIO_THROTTLE = stall_counter("mio_throttle")
CONFLICTS = (
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
)
WAVEFRONTS = (
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
)

PADDING_EXAMPLE = """\
__shared__ float tile[32][33];     // a column of 32 lies in 32 banks; with [32][32] in one
"""


def conflict_share(view: View) -> float | None:
    """Return conflicts ÷ wavefronts of loads and stores together, 0 to 1; None without any.

    Raises:
        MissingFigure: one of the counters is unknown.
    """
    wavefronts = sum(view.need(name) for name in WAVEFRONTS)
    conflicts = sum(view.need(name) for name in CONFLICTS)
    return conflicts / wavefronts if wavefronts > 0 else None


@ToolRegistry.register
class SharedBankConflict(ProfilingTool):
    """Bank conflicts, and warps that wait for shared memory."""

    name = "shared_bank_conflict"
    title = "Shared-memory bank conflicts"
    source = "ncu"
    required = (*CONFLICTS, *WAVEFRONTS, SHORT_SCOREBOARD, MIO_THROTTLE)
    thresholds: ClassVar[Mapping[str, float]] = {
        "conflict_share": 0.10,
        "conflict_share_high": 0.30,
        "stall_pct": 10.0,
    }
    # Memory-bound problems too: a transposition is one, and its tile is where conflicts are.
    priority = 65

    def trigger(self, view: View) -> bool:
        share = conflict_share(view)
        stalled = view.need(SHORT_SCOREBOARD) + view.need(MIO_THROTTLE)
        return (
            share is not None
            and share > self.thresholds["conflict_share"]
            and stalled > self.thresholds["stall_pct"]
        )

    def analyze(self, view: View) -> Analysis:
        share = conflict_share(view) or 0.0
        stalled = view.need(SHORT_SCOREBOARD) + view.need(MIO_THROTTLE)
        return Analysis(
            severity="high" if share > self.thresholds["conflict_share_high"] else "medium",
            summary=f"{100 * share:.0f} % of the shared-memory wavefronts are repeats for bank "
            f"conflicts, and {stalled:.0f} % of the active warps wait for shared memory.",
            root_cause="Several lanes of a warp hit different rows of one 4-byte bank.",
            recommendations=(
                "Pad the rows of the tile by one element: [32][33].",
                "Swizzle: column index xor row index.",
                "ldmatrix and stmatrix for matrix operands; 16-byte accesses, eight lanes a phase.",
            ),
            expected_improvement="1.1-1.5x",
            observed={"conflict_share": share, "shared_stall_pct": stalled},
            code_example=PADDING_EXAMPLE,
            explains=frozenset({"stall:short_scoreboard", "stall:mio_throttle"}),
        )
