"""Registers: too many to keep warps resident, or so many that they spill (KernelPro App. B)."""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kopt.finding import Severity
from kopt.tools.counters import stall_counter
from kopt.tools.guards import GMMA, ISSUE_ACTIVE, MEMORY_PCT, SM_PCT, uses_wgmma
from kopt.tools.occupancy import LIMITS, binding_limit
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.view import MissingFigure, View

REGISTERS = "launch__registers_per_thread"
LONG_SCOREBOARD = stall_counter("long_scoreboard")
ELIGIBLE = "smsp__warps_eligible.avg.per_cycle_active"
SPILL_COUNT = "sass__inst_executed_register_spilling"
LOCAL_SECTORS = (
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
)
GLOBAL_SECTORS = (
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
)

BOUNDS_EXAMPLE = """\
__global__ void __launch_bounds__(256, 2) kernel(...)   // two blocks of 256 threads resident
# Triton: triton.Config({...}, num_warps=8, maxnreg=128)
"""


@ToolRegistry.register
class HighRegisterUsage(ProfilingTool):
    """Registers of a thread keep warps from being resident."""

    name = "high_register_usage"
    title = "Registers limit the resident warps"
    source = "ncu"
    required = (REGISTERS, *LIMITS.values())
    optional = (GMMA, "sass:HGMMA", "sass:QGMMA")
    thresholds: ClassVar[Mapping[str, float]] = {"registers_medium": 96.0, "registers_high": 128.0}
    affinity = ("compute", "latency", "mixed")
    priority = 70

    def trigger(self, view: View) -> bool:
        many = view.need(REGISTERS) >= self.thresholds["registers_medium"]
        # Warpgroup products hold their accumulators in registers: many are right there.
        return many and "registers" in binding_limit(view) and not uses_wgmma(view)

    def analyze(self, view: View) -> Analysis:
        registers = view.need(REGISTERS)
        blocks = view.need(LIMITS["registers"])
        high = registers >= self.thresholds["registers_high"]
        return Analysis(
            severity="high" if high else "medium",
            summary=f"{registers:.0f} registers a thread leave room for {blocks:.0f} block(s) on a "
            "multiprocessor; nothing else limits them more.",
            root_cause="The demand for registers limits the resident warps.",
            recommendations=(
                "A bound: __launch_bounds__ or maxnreg (Triton: maxnreg in the config); look for "
                "spills afterwards.",
                "A smaller tile, or fewer stages.",
                "More warps for the same tile, so that each thread keeps less of it.",
                "Split the kernel where two phases keep their values at the same time.",
            ),
            expected_improvement="1.1-2x",
            observed={"registers_per_thread": registers, "blocks_by_registers": blocks},
            code_example=BOUNDS_EXAMPLE,
            cause="registers",
            explains=frozenset({"occupancy:registers"}),
        )


@ToolRegistry.register
class RegisterSpill(ProfilingTool):
    """Registers spill to local memory, and it hurts.

    Spills: bytes by the compiler or spill instructions by ncu where either is known, STL and LDL in
    the binary where not (a dynamically indexed local array has those too). They hurt in case
    A, latency: long_scoreboard > 15, compute < 50, memory < 50; B, bandwidth: memory > 60 and local
    sectors > 30 % of all; C, occupancy: registers bind, and issue active < 0.30 or eligible < 0.6.
    """

    name = "register_spill"
    title = "Registers spill"
    source = "sass"
    required = ()
    optional = (
        *("sass:STL", "sass:LDL", "kernel.spill_bytes", "kernel.stack_bytes", SPILL_COUNT),
        *(LONG_SCOREBOARD, SM_PCT, MEMORY_PCT, ISSUE_ACTIVE, ELIGIBLE),
        *(*LOCAL_SECTORS, *GLOBAL_SECTORS, *LIMITS.values()),
    )
    thresholds: ClassVar[Mapping[str, float]] = {
        "a_long_scoreboard_pct": 15.0,
        "a_throughput_below_pct": 50.0,
        "b_memory_pct": 60.0,
        "b_local_share": 0.30,
        "c_issue_active_below": 0.30,
        "c_eligible_below": 0.6,
    }
    priority = 92

    def trigger(self, view: View) -> bool:
        return _spills(view) and self._case(view) is not None

    def analyze(self, view: View) -> Analysis:
        case = self._case(view) or "C"
        severity = _SEVERITIES[case]
        stl, ldl = view.get("sass:STL"), view.get("sass:LDL")
        spill_bytes = view.get("kernel.spill_bytes")
        figures = {
            "stl_in_binary": stl,
            "ldl_in_binary": ldl,
            "spill_bytes": spill_bytes,
            "stack_bytes": view.get("kernel.stack_bytes"),
            "spill_instructions": view.get(SPILL_COUNT),
            "local_share": _local_share(view),
            "long_scoreboard_pct": view.get(LONG_SCOREBOARD),
            "memory_pct": view.get(MEMORY_PCT),
        }
        seen = [f"{int(stl)} STL and {int(ldl)} LDL in the binary"] if stl and ldl else []
        if spill_bytes:
            seen.append(f"{int(spill_bytes)} bytes of spill stores and loads")
        if view.get(SPILL_COUNT):
            seen.append(f"{view.need(SPILL_COUNT):.0f} spill instructions executed")
        return Analysis(
            severity=severity,
            summary=f"Registers spill ({'; '.join(seen) or 'local memory is used'}). "
            f"{_CASES[case]}",
            root_cause="Spilled registers travel through L1 and local memory.",
            recommendations=(
                "A smaller tile, fewer stages, or more warps for the same tile.",
                "Raise the bound: __launch_bounds__ with fewer blocks, maxnreg, -maxrregcount.",
                "Split the kernel, or recompute in place of keeping.",
                "Index local arrays by constants (unrolled loops), so that they stay in registers.",
            ),
            expected_improvement="1.5-10x",
            observed={name: value for name, value in figures.items() if value is not None},
            code_example=BOUNDS_EXAMPLE,
            cause="registers",
            explains=_EXPLAINED,
        )

    def _case(self, view: View) -> str | None:
        """The worst case that is known to hold; None: all are known not to.

        Raises:
            MissingFigure: none is known to hold and one may.
        """
        missing: MissingFigure | None = None
        for case, holds in (("B", self._bandwidth), ("A", self._latency), ("C", self._occupancy)):
            try:
                if holds(view):
                    return case
            except MissingFigure as error:
                missing = missing or error
        if missing is not None:
            raise missing
        return None

    def _latency(self, view: View) -> bool:
        below = self.thresholds["a_throughput_below_pct"]
        return (
            view.need(LONG_SCOREBOARD) > self.thresholds["a_long_scoreboard_pct"]
            and view.need(SM_PCT) < below
            and view.need(MEMORY_PCT) < below
        )

    def _bandwidth(self, view: View) -> bool:
        if view.need(MEMORY_PCT) <= self.thresholds["b_memory_pct"]:
            return False
        share = _local_share(view)
        if share is None:
            raise MissingFigure(LOCAL_SECTORS[0])
        return share > self.thresholds["b_local_share"]

    def _occupancy(self, view: View) -> bool:
        if "registers" not in binding_limit(view):
            return False
        issue_active, eligible = view.get(ISSUE_ACTIVE), view.get(ELIGIBLE)
        if issue_active is not None and issue_active < self.thresholds["c_issue_active_below"]:
            return True
        if eligible is not None and eligible < self.thresholds["c_eligible_below"]:
            return True
        view.need(ISSUE_ACTIVE)
        view.need(ELIGIBLE)
        return False


_EXPLAINED = frozenset(
    {"occupancy:registers", "stall:long_scoreboard", "stall:lg_throttle", "algorithmic_waste"}
)
_SEVERITIES: dict[str, Severity] = {"A": "high", "B": "critical", "C": "medium"}
_CASES = {
    "A": "Neither compute nor memory is busy: the spills add latency.",
    "B": "They take a good part of the memory's bandwidth.",
    "C": "Registers limit the resident warps besides, and the schedulers starve.",
}


def _spills(view: View) -> bool:
    """Whether registers spill.

    Raises:
        MissingFigure: nothing that tells was measured.
    """
    counted = [view.get(name) for name in ("kernel.spill_bytes", SPILL_COUNT)]
    known = [value for value in counted if value is not None]
    if known:
        return max(known) > 0
    return view.need("sass:STL") + view.need("sass:LDL") > 0


def _local_share(view: View) -> float | None:
    """Local sectors ÷ local and global ones; None where one of them is unknown."""
    values = [view.get(name) for name in (*LOCAL_SECTORS, *GLOBAL_SECTORS)]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not sum(known):
        return None
    return sum(known[: len(LOCAL_SECTORS)]) / sum(known)
