"""Work that moves what is there already: copies, fills, intermediates between short kernels."""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.traffic import dram_bytes
from kopt.tools.view import MissingFigure, View

E2E = "timeline.e2e_us"
BUSY = "timeline.busy_us"
LAUNCHES = "timeline.launches"
MEMCPY_US = "timeline.memcpy_us"
MEMCPY_BYTES = "timeline.memcpy_bytes"
MEMSET_US = "timeline.memset_us"


@ToolRegistry.register
class MemcpyOverhead(ProfilingTool):
    """Copies and fills take a good part of the call."""

    name = "memcpy_overhead"
    title = "Copies and fills"
    source = "timeline"
    scope = "call"
    required = (MEMCPY_US, E2E)
    optional = (MEMSET_US, MEMCPY_BYTES)
    thresholds: ClassVar[Mapping[str, float]] = {"copy_pct": 5.0, "copy_pct_high": 20.0}
    affinity = ("memory", "latency", "mixed")
    priority = 66

    def trigger(self, view: View) -> bool:
        if self._share(view) > self.thresholds["copy_pct"]:
            return True
        view.need(MEMSET_US)  # with the fills unknown, they may be what is above
        return False

    def analyze(self, view: View) -> Analysis:
        share = self._share(view)
        figures = {
            "memcpy_us": view.need(MEMCPY_US),
            "memset_us": view.get(MEMSET_US),
            "memcpy_bytes": view.get(MEMCPY_BYTES),
            "copy_pct": share,
        }
        return Analysis(
            severity="high" if share > self.thresholds["copy_pct_high"] else "medium",
            summary=f"Copies and fills take {share:.0f} % of the call.",
            root_cause="Extra copies: .contiguous(), cat, transfers from the host in forward, "
            "zero-fill before atomics.",
            recommendations=(
                "Read with strides in place of .contiguous(); write into the slice of the output.",
                "Fold the copy into the kernel that produces or consumes it.",
                "A first store in place of zero_ and an atomic.",
            ),
            expected_improvement=f"up to {1 / max(1 - share / 100, 0.01):.1f}x",
            observed={name: value for name, value in figures.items() if value is not None},
            call_share=min(1.0, share / 100.0),
        )

    def _share(self, view: View) -> float:
        copied_us = view.need(MEMCPY_US) + (view.get(MEMSET_US) or 0.0)
        return 100.0 * copied_us / view.need(E2E)


@ToolRegistry.register
class KernelFragmentation(ProfilingTool):
    """Several short kernels, or kernels that hand intermediates on through memory."""

    name = "kernel_fragmentation"
    title = "Many short kernels"
    source = "timeline"
    scope = "call"
    required = (LAUNCHES,)
    optional = (BUSY, "roofline.bytes", "kernel.time_us", "kernel.launches")
    thresholds: ClassVar[Mapping[str, float]] = {
        "mean_us": 10.0,
        "intermediate_share": 0.30,
        "many_launches": 10.0,
    }
    affinity = ("memory", "latency", "mixed")
    priority = 74

    def trigger(self, view: View) -> bool:
        if view.need(LAUNCHES) <= 1:
            return False
        mean_us, share = _mean_us(view), _intermediate_share(view)
        if mean_us is not None and mean_us < self.thresholds["mean_us"]:
            return True
        if share is not None and share > self.thresholds["intermediate_share"]:
            return True
        if mean_us is None:
            raise MissingFigure(BUSY)
        return False

    def analyze(self, view: View) -> Analysis:
        launches = view.need(LAUNCHES)
        mean_us, share = _mean_us(view), _intermediate_share(view)
        observed = {"launches": launches}
        seen = [f"{launches:.0f} kernels"]
        if mean_us is not None:
            observed["mean_kernel_us"] = mean_us
            seen.append(f"{mean_us:.1f} us on average")
        if share is not None:
            observed["intermediate_share"] = share
            seen.append(f"{100 * share:.0f} % of their traffic is intermediates")
        shares = {each.name: each.share for each in view.evidence.kernels if each.share is not None}
        top = max(shares, key=lambda name: shares[name] or 0.0, default=None)
        if top is not None:
            observed["top_kernel_share"] = shares[top] or 0.0
        short = mean_us is not None and mean_us < self.thresholds["mean_us"]
        many = short and launches >= self.thresholds["many_launches"]
        return Analysis(
            severity="high" if many else "medium",
            summary=f"{', '.join(seen)}.",
            root_cause="Each kernel reads again what the one before it wrote, and pays its launch.",
            recommendations=(
                "Fuse the pointwise tail into the kernel that produces its input.",
                "Merge reductions over the same data into one pass.",
                *(
                    ()
                    if top is None
                    else (f"Where that is not possible, work on `{top:.80}` first.",)
                ),
            ),
            expected_improvement="the share of the intermediates and launches",
            observed=observed,
        )


def _mean_us(view: View) -> float | None:
    """Device time of a kernel on average, of the kernels where they are known, else busy time."""
    kernels = view.evidence.kernels
    timed = [(each.time_us, each.launches) for each in kernels if each.time_us is not None]
    if kernels and len(timed) == len(kernels) and sum(count for _, count in timed) > 0:
        return sum(time_us for time_us, _ in timed) / sum(count for _, count in timed)
    busy_us = view.get(BUSY)
    return None if busy_us is None else busy_us / view.need(LAUNCHES)


def _intermediate_share(view: View) -> float | None:
    """Of the bytes to and from DRAM, those beyond the compulsory ones; None where unknown."""
    compulsory, moved = view.get("roofline.bytes"), dram_bytes(view.evidence)
    if compulsory is None or not moved:
        return None
    return max(0.0, (moved - compulsory) / moved)
