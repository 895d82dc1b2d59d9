"""How warps touch global memory: which sectors, and how wide.

A perfect load of 4, 8 or 16 bytes a lane makes 4, 8 or 16 sectors a request: sectors per request
alone say nothing (KernelPro's "15.88 sectors/request, uncoalesced" was a nearly perfect 16-byte
load). What tells is how many of a sector's 32 bytes were asked for. TMA and bulk copies are no LSU
traffic and are not counted here, so that their kernels stay silent by the number of sectors.
Asynchronous copies (LDGSTS: cp.async, which Triton's pipelines are made of) are: their sectors are
among those of loads, their bytes are counted apart.
"""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, get_args

from kopt.tools.counters import stall_counter
from kopt.tools.guards import DRAM_PCT
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.view import MissingFigure, View, sass_count

LG_THROTTLE = stall_counter("lg_throttle")
THREADS_PER_INSTRUCTION = "smsp__thread_inst_executed_per_inst_executed.ratio"
SECTOR_BYTES = 32.0

MOST_REQUEST_BYTES = 512.0
"""What 32 lanes ask for at most in one request, 16 bytes each."""

Access = Literal["ld", "st", "ldgsts"]
"""Loads, stores, asynchronous copies to shared memory."""
ACCESSES: tuple[Access, ...] = get_args(Access)
_WORDS: dict[Access, str] = {"ld": "loads", "st": "stores", "ldgsts": "copies to shared memory"}


def bytes_per_sector(access: Access) -> str:
    """Return the counter of the bytes asked for in each sector touched, 32 at best."""
    return f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{access}.ratio"


def sectors(access: Access) -> str:
    """Return the counter of 32-byte sectors; those of loads include those of copies."""
    if access == "ldgsts":
        return "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum"
    return f"l1tex__t_sectors_pipe_lsu_mem_global_op_{access}.sum"


def requests(access: Literal["ld", "st"]) -> str:
    """Return the counter of requests: instructions of warps; those of loads include copies."""
    return f"l1tex__t_requests_pipe_lsu_mem_global_op_{access}.sum"


_EXPLAINED = frozenset(
    {"vectorization", "stall:long_scoreboard", "stall:lg_throttle", "algorithmic_waste"}
)

TRANSPOSE_EXAMPLE = """\
__shared__ float tile[32][33];                          // 33: no bank conflicts
tile[threadIdx.y][threadIdx.x] = in[row * width + column];      // lanes along the row
__syncthreads();
out[column0 * height + row0 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
"""
WIDE_EXAMPLE = """\
float4 v = reinterpret_cast<const float4*>(in)[index];  // 16 bytes a lane, address a multiple of 16
# Triton: BLOCK / (32 * num_warps) >= 4, contiguous, sizes divisible by 16
"""


@ToolRegistry.register
class MemoryCoalescing(ProfilingTool):
    """Lanes of a warp touch scattered sectors, of which most bytes are not asked for."""

    name = "memory_coalescing"
    title = "Uncoalesced global memory"
    source = "ncu"
    required = ()
    optional = (
        *(bytes_per_sector(access) for access in ACCESSES),
        *(sectors(access) for access in ACCESSES),
        *(requests("ld"), requests("st"), THREADS_PER_INSTRUCTION, "sass:LDG", "sass:LDGSTS"),
    )
    thresholds: ClassVar[Mapping[str, float]] = {
        "medium_below_bytes": 24.0,
        "high_below_bytes": 16.0,
        "critical_below_bytes": 8.0,
        "least_sectors": 1e5,
    }
    affinity = ("memory", "latency", "mixed")
    priority = 85

    def trigger(self, view: View) -> bool:
        return self._worst(view) is not None

    def analyze(self, view: View) -> Analysis:
        useful, access = self._worst(view) or (SECTOR_BYTES, "ld")
        touched = _touched(access, view) or 0.0
        per_request = _per_request(access, view)
        observed = {f"bytes_per_sector_{access}": useful, f"sectors_{access}": touched}
        if per_request is not None:
            observed[f"sectors_per_request_{access}"] = per_request
        severe = useful < self.thresholds["high_below_bytes"]
        return Analysis(
            severity="critical"
            if useful < self.thresholds["critical_below_bytes"]
            else "high"
            if severe
            else "medium",
            summary=f"Of each 32-byte sector that {_WORDS[access]} touch, {useful:.1f} bytes are "
            "asked for"
            + ("." if per_request is None else f" ({per_request:.1f} sectors a request)."),
            root_cause="The lanes of a warp touch scattered sectors.",
            recommendations=(
                "Make the index that moves fastest in memory the lane index.",
                "Stage a tile through shared memory, and transpose it there.",
                "Change the layout of the intermediate that is read so (strides, channels_last).",
                "On Hopper: TMA for two-dimensional tiles.",
            ),
            expected_improvement=f"up to {SECTOR_BYTES / max(useful, 1.0):.1f}x of its traffic",
            observed=observed,
            code_example=TRANSPOSE_EXAMPLE,
            cause="global_access",
            explains=_EXPLAINED if severe else frozenset({"vectorization"}),
        )

    def _worst(self, view: View) -> tuple[float, Access] | None:
        """The fewest useful bytes of a sector among the accesses that trigger, and whose.

        Raises:
            MissingFigure: none is known to trigger and one may.
        """
        found: list[tuple[float, Access]] = []
        missing: str | None = None
        for access in ACCESSES:
            touched, useful = _touched(access, view), _useful(access, view)
            if touched is not None and touched < self.thresholds["least_sectors"]:
                continue
            if useful is not None and useful >= self.thresholds["medium_below_bytes"]:
                continue
            if access == "ldgsts" and touched is None and not view.get("sass:LDGSTS"):
                continue  # nothing says that it copies at all
            if touched is None or useful is None:
                missing = missing or (sectors if touched is None else bytes_per_sector)(access)
            else:
                found.append((useful, access))
        if not found and missing is not None:
            raise MissingFigure(missing)
        return min(found) if found else None


def _touched(access: Access, view: View) -> float | None:
    """Sectors of an access, loads without copies; None where they cannot be told apart."""
    total = view.get(sectors("st" if access == "st" else "ld"))
    if access == "st" or total is None:
        return total
    copied = _copied(view, total=total)
    if access == "ldgsts":
        return copied
    if copied is None:
        # Without a disassembly nothing says that there are copies among the loads.
        return total if view.get("sass:LDGSTS") is None else None
    return max(0.0, total - copied)


def _copied(view: View, *, total: float) -> float | None:
    """Sectors of copies among all that are loaded, by their counter or by the binary."""
    counted, loads, copies = (view.get(n) for n in (sectors("ldgsts"), "sass:LDG", "sass:LDGSTS"))
    if counted or copies is None:
        return counted
    if not copies:
        return 0.0
    return total if loads == 0 else None


def _useful(access: Access, view: View) -> float | None:
    """Bytes of a sector that were asked for, 32 at best.

    Of copies whose bytes are not counted, the most that their requests can have asked for, where
    that already tells of waste.
    """
    counted = view.get(bytes_per_sector(access))
    if counted is not None or access != "ldgsts":
        return counted
    per_request = _per_request(access, view)
    if per_request is None or MOST_REQUEST_BYTES / per_request >= SECTOR_BYTES:
        return None
    return MOST_REQUEST_BYTES / per_request


def _per_request(access: Access, view: View) -> float | None:
    """Sectors of a request; None where loads and copies share the requests."""
    mixed = bool(view.get("sass:LDG")) and bool(view.get("sass:LDGSTS"))
    if access != "st" and mixed:
        return None
    kind: Literal["ld", "st"] = "st" if access == "st" else "ld"
    touched, asked = view.get(sectors(kind)), view.get(requests(kind))
    return touched / asked if touched and asked else None


@ToolRegistry.register
class Vectorization(ProfilingTool):
    """Coalesced loads of 4 bytes a lane, and bandwidth left over."""

    name = "vectorization"
    title = "Narrow loads"
    source = "ncu"
    required = (sectors("ld"), requests("ld"), bytes_per_sector("ld"), DRAM_PCT)
    optional = (LG_THROTTLE, "sass:LDG", "sass:LDG.128", "sass:LDG.64")
    thresholds: ClassVar[Mapping[str, float]] = {
        "sectors_per_request": 4.5,
        "bytes_per_sector": 24.0,
        "dram_below_pct": 80.0,
        "lg_throttle_high_pct": 15.0,
        "wide_share": 0.5,
    }
    affinity = ("memory", "latency", "mixed")
    priority = 60

    def trigger(self, view: View) -> bool:
        asked = view.need(requests("ld"))
        if asked <= 0 or view.need(DRAM_PCT) >= self.thresholds["dram_below_pct"]:
            return False
        narrow = view.need(sectors("ld")) / asked <= self.thresholds["sectors_per_request"]
        coalesced = view.need(bytes_per_sector("ld")) >= self.thresholds["bytes_per_sector"]
        return narrow and coalesced and not self._is_wide(view)

    def analyze(self, view: View) -> Analysis:
        per_request = view.need(sectors("ld")) / view.need(requests("ld"))
        throttle = view.get(LG_THROTTLE)
        dram = view.need(DRAM_PCT)
        observed = {"sectors_per_request": per_request, "dram_pct": dram}
        if throttle is not None:
            observed["lg_throttle_pct"] = throttle
        full = throttle is not None and throttle > self.thresholds["lg_throttle_high_pct"]
        return Analysis(
            severity="high" if full else "medium",
            summary=f"Loads are coalesced but narrow ({per_request:.1f} sectors a request: 4 bytes "
            f"a lane), at {dram:.0f} % of DRAM bandwidth.",
            root_cause="One 4-byte access a lane: too few bytes in flight for each instruction.",
            recommendations=(
                "16 bytes a lane: float4, half8.",
                "Triton: a block of at least four contiguous elements a thread; tell alignment by "
                "tl.multiple_of and tl.max_contiguous.",
                "Two to four independent loads a thread before the first use.",
            ),
            expected_improvement="1.1-1.5x",
            observed=observed,
            code_example=WIDE_EXAMPLE,
            explains=frozenset({"stall:lg_throttle"}),
        )

    def _is_wide(self, view: View) -> bool:
        """Whether the binary is known to load wide in half of its loads or more."""
        if view.kernel is None:
            return False
        loads = sass_count(view.kernel, "LDG")
        wide = [sass_count(view.kernel, f"LDG.{bits}") or 0 for bits in (128, 64)]
        return bool(loads) and sum(wide) >= self.thresholds["wide_share"] * (loads or 0)
