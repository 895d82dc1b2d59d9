"""Energy-only tools (KernelPro App. I.3): waste that time does not show.

Each fires where its pattern is there and the stall that would make it cost time is low. They are
asked whatever the class of the bottleneck, and their notes stand below all findings of speed.
"""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kopt.evidence import KernelEvidence
from kopt.finding import Severity
from kopt.tools.global_access import LG_THROTTLE, bytes_per_sector, sectors
from kopt.tools.guards import DRAM_PCT
from kopt.tools.registers import LOCAL_SECTORS, LONG_SCOREBOARD, RegisterSpill
from kopt.tools.registry import ToolRegistry
from kopt.tools.shared_memory import CONFLICTS, SHORT_SCOREBOARD, WAVEFRONTS, conflict_share
from kopt.tools.stalls import BARRIER
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.traffic import DRAM_READ, DRAM_WRITE
from kopt.tools.view import MissingFigure, View

THREAD_INSTRUCTIONS = "smsp__thread_inst_executed.sum"
LOW: Severity = "low"
ELEMENT_BYTES = 8.0
"""Traffic of one element of an elementwise fp32 kernel: 4 bytes read, 4 written."""


class EnergyTool(ProfilingTool):
    """What the energy-only tools share."""

    source = "energy"
    partition = "energy"
    priority: ClassVar[int] = 10


@ToolRegistry.register
class EnergyBankConflict(EnergyTool):
    """Bank conflicts that other stalls hide."""

    name = "energy_bank_conflict"
    title = "Hidden bank conflicts"
    required = (*CONFLICTS, *WAVEFRONTS, SHORT_SCOREBOARD)
    thresholds: ClassVar[Mapping[str, float]] = {"conflict_share": 0.10, "stall_below_pct": 10.0}

    def trigger(self, view: View) -> bool:
        share = conflict_share(view)
        hidden = view.need(SHORT_SCOREBOARD) < self.thresholds["stall_below_pct"]
        return hidden and share is not None and share > self.thresholds["conflict_share"]

    def analyze(self, view: View) -> Analysis:
        share = conflict_share(view) or 0.0
        return Analysis(
            severity=LOW,
            summary=f"{100 * share:.0f} % of the shared-memory wavefronts are repeats for bank "
            "conflicts; other stalls hide them.",
            root_cause="Repeated wavefronts use shared-memory energy.",
            recommendations=("Pad or swizzle the tile.",),
            expected_improvement="0-5 % of the energy",
            observed={"conflict_share": share},
        )


@ToolRegistry.register
class EnergyRegisterSpill(EnergyTool):
    """Local-memory traffic that costs no time."""

    name = "energy_register_spill"
    title = "Hidden local-memory traffic"
    required = (*LOCAL_SECTORS, LONG_SCOREBOARD)
    optional = RegisterSpill.optional
    thresholds: ClassVar[Mapping[str, float]] = {
        "local_sectors_above": 0.0,
        "stall_below_pct": 15.0,
    }

    def trigger(self, view: View) -> bool:
        touched = sum(view.need(name) for name in LOCAL_SECTORS)
        hidden = view.need(LONG_SCOREBOARD) < self.thresholds["stall_below_pct"]
        return hidden and touched > self.thresholds["local_sectors_above"] and not _hurts(view)

    def analyze(self, view: View) -> Analysis:
        touched = sum(view.need(name) for name in LOCAL_SECTORS)
        return Analysis(
            severity=LOW,
            summary=f"{touched:.3g} sectors of local memory are touched in a launch, at no cost in "
            "time.",
            root_cause="Spilled registers and local arrays travel through L1.",
            recommendations=("Fewer live registers; constant indices into local arrays.",),
            expected_improvement="0-10 % of the energy",
            observed={"local_sectors": touched},
        )


@ToolRegistry.register
class EnergyUncoalesced(EnergyTool):
    """Unused bytes of sectors that cost no time."""

    name = "energy_uncoalesced"
    title = "Hidden unused sector bytes"
    required = (bytes_per_sector("ld"), sectors("ld"), LONG_SCOREBOARD, LG_THROTTLE)
    thresholds: ClassVar[Mapping[str, float]] = {
        "bytes_per_sector_below": 24.0,
        "stall_below_pct": 15.0,
    }

    def trigger(self, view: View) -> bool:
        if view.need(sectors("ld")) <= 0:
            return False
        stalled = view.need(LONG_SCOREBOARD) + view.need(LG_THROTTLE)
        useful = view.need(bytes_per_sector("ld"))
        return (
            useful < self.thresholds["bytes_per_sector_below"]
            and stalled < self.thresholds["stall_below_pct"]
        )

    def analyze(self, view: View) -> Analysis:
        useful = view.need(bytes_per_sector("ld"))
        return Analysis(
            severity=LOW,
            summary=f"{useful:.1f} of the 32 bytes of a sector are asked for, at no cost in time.",
            root_cause="Bytes that nobody asked for move over the chip.",
            recommendations=("Coalesce the loads, 16 bytes a lane.",),
            expected_improvement="0-10 % of the energy",
            observed={"bytes_per_sector_ld": useful},
        )


@ToolRegistry.register
class EnergyRedundantBarrier(EnergyTool):
    """Barriers that nobody waits for."""

    name = "energy_redundant_barrier"
    title = "Barriers that nobody waits for"
    required = ("sass:BAR", BARRIER)
    optional = ("sass:WARPSYNC",)
    thresholds: ClassVar[Mapping[str, float]] = {"barriers_per_1000": 5.0, "stall_below_pct": 10.0}

    def trigger(self, view: View) -> bool:
        hidden = view.need(BARRIER) < self.thresholds["stall_below_pct"]
        return hidden and self._per_1000(view) > self.thresholds["barriers_per_1000"]

    def analyze(self, view: View) -> Analysis:
        per_1000 = self._per_1000(view)
        return Analysis(
            severity=LOW,
            summary=f"{per_1000:.0f} of 1000 instructions in the binary are barriers, and "
            f"{view.need(BARRIER):.0f} % of the active warps wait at one.",
            root_cause="Barriers cost instructions and issue slots where no warp waits.",
            recommendations=("Drop them, or weaken them to __syncwarp.",),
            expected_improvement="0-3 % of the energy",
            observed={"barriers_per_1000": per_1000, "barrier_pct": view.need(BARRIER)},
        )

    def _per_1000(self, view: View) -> float:
        barriers = view.need("sass:BAR") + (view.get("sass:WARPSYNC") or 0.0)
        total = instructions_in_binary(view.kernel) if view.kernel is not None else 0
        return 1000.0 * barriers / total if total else 0.0


@ToolRegistry.register
class EnergyInstructionBloat(EnergyTool):
    """Instructions that hide under the bandwidth roof: what KernelPro's Swish pair differed in.

    More than 20 instructions of a thread for each 8 bytes of DRAM traffic (an fp32 element read and
    one written), with DRAM above 60 % of its peak.
    """

    name = "energy_instruction_bloat"
    title = "Instructions hidden by the memory"
    required = (THREAD_INSTRUCTIONS, DRAM_PCT, DRAM_READ, DRAM_WRITE)
    optional = ("sass:MUFU", "sass:FFMA", "sass:CALL")
    thresholds: ClassVar[Mapping[str, float]] = {"instructions_per_element": 20.0, "dram_pct": 60.0}

    def trigger(self, view: View) -> bool:
        bound = view.need(DRAM_PCT) > self.thresholds["dram_pct"]
        return bound and self._per_element(view) > self.thresholds["instructions_per_element"]

    def analyze(self, view: View) -> Analysis:
        per_element = self._per_element(view)
        calls = view.get("sass:CALL")
        slow = " The binary calls a slow path (division, square root)." if calls else ""
        return Analysis(
            severity=LOW,
            summary=f"{per_element:.0f} instructions of a thread for each 8 bytes of DRAM traffic, "
            f"hidden by the memory.{slow}",
            root_cause="Exact division and functions with slow paths, or index arithmetic for each "
            "element.",
            recommendations=(
                "__fdividef, __expf, fast tl.math functions, where the tolerance allows.",
                "Index arithmetic once for four elements: 16 bytes a lane.",
            ),
            expected_improvement="about 12 % of the energy",
            observed={"instructions_per_element": per_element, "dram_pct": view.need(DRAM_PCT)},
        )

    def _per_element(self, view: View) -> float:
        moved = view.need(DRAM_READ) + view.need(DRAM_WRITE)
        elements = moved / ELEMENT_BYTES
        return view.need(THREAD_INSTRUCTIONS) / elements if elements > 0 else 0.0


def instructions_in_binary(kernel: KernelEvidence) -> int:
    """Return the number of instructions of a binary; 0 where it was not read."""
    whole = {name: count for name, count in kernel.sass.items() if "." not in name}
    if not whole:
        return sum(kernel.sass.values())
    # A full opcode whose mnemonic has no entry of its own counts beside those that have.
    alone = sum(
        count
        for name, count in kernel.sass.items()
        if "." in name and name.split(".")[0] not in whole
    )
    return sum(whole.values()) + alone


def _hurts(view: View) -> bool:
    try:
        return RegisterSpill().trigger(view)
    except MissingFigure:
        return False
