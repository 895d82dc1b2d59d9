"""How warps touch global memory: which sectors, and how wide.

A perfect load of 4, 8 or 16 bytes a lane makes 4, 8 or 16 sectors a request: sectors per request
alone say nothing (KernelPro's "15.88 sectors/request, uncoalesced" was a nearly perfect 16-byte
load). What tells is how many of a sector's 32 bytes were asked for. TMA and bulk copies are no LSU
traffic and are not counted here, so that their kernels stay silent by the number of sectors.
"""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from kopt.tools.counters import stall_counter
from kopt.tools.guards import DRAM_PCT
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.view import MissingFigure, View, sass_count

LG_THROTTLE = stall_counter("lg_throttle")
THREADS_PER_INSTRUCTION = "smsp__thread_inst_executed_per_inst_executed.ratio"
SECTOR_BYTES = 32.0

Access = Literal["ld", "st"]
_WORDS: dict[Access, str] = {"ld": "loads", "st": "stores"}


def bytes_per_sector(access: Access) -> str:
    """Return the counter of the bytes asked for in each sector touched, 32 at best."""
    return f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{access}.ratio"


def sectors(access: Access) -> str:
    """Return the counter of 32-byte sectors."""
    return f"l1tex__t_sectors_pipe_lsu_mem_global_op_{access}.sum"


def requests(access: Access) -> str:
    """Return the counter of requests: instructions of warps."""
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
        *(bytes_per_sector("ld"), bytes_per_sector("st"), sectors("ld"), sectors("st")),
        *(requests("ld"), requests("st"), THREADS_PER_INSTRUCTION),
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
        access = self._worst(view) or "ld"
        useful = view.need(bytes_per_sector(access))
        touched, asked = view.need(sectors(access)), view.get(requests(access))
        per_request = None if not asked else touched / asked
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

    def _worst(self, view: View) -> Access | None:
        """The access with the fewest useful bytes among those that trigger.

        Raises:
            MissingFigure: none is known to trigger and one may.
        """
        found: list[tuple[float, Access]] = []
        missing: str | None = None
        accesses: tuple[Access, ...] = ("ld", "st")
        for access in accesses:
            touched, useful = view.get(sectors(access)), view.get(bytes_per_sector(access))
            if touched is not None and touched < self.thresholds["least_sectors"]:
                continue
            if useful is not None and useful >= self.thresholds["medium_below_bytes"]:
                continue
            if touched is None or useful is None:
                missing = missing or (sectors if touched is None else bytes_per_sector)(access)
            else:
                found.append((useful, access))
        if not found and missing is not None:
            raise MissingFigure(missing)
        return min(found)[1] if found else None


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
