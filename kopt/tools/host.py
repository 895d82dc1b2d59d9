"""The host beside the device: launches, gaps, and calls that block (KernelPro App. B, nsys tools).

The share of idle time is 1 - busy ÷ end-to-end; a profiler makes launches dearer by 1 to 2 us, so
that a replayed graph should confirm what is found here.
"""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kopt.finding import Severity
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.view import View

E2E = "timeline.e2e_us"
OVERHEAD = "timeline.launch_overhead_pct"
LAUNCHES = "timeline.launches"
LAUNCH_NS = "timeline.avg_launch_ns"
SYNCS = "timeline.syncs"
SYNC_US = "timeline.sync_us"

FEW_LAUNCHES_PER_SYNC = 10.0
"""With so few launches for each blocking call, the idle time is the calls', not the launches'."""

GRAPH_EXAMPLE = """\
graph = torch.cuda.CUDAGraph()                 # after warm-up, inputs in fixed buffers
with torch.cuda.graph(graph):
    static_out = run(static_in)
static_in.copy_(x); graph.replay()
"""


@ToolRegistry.register
class LaunchOverhead(ProfilingTool):
    """The device waits for launches."""

    name = "launch_overhead"
    title = "Launch overhead"
    source = "timeline"
    scope = "call"
    required = (OVERHEAD, LAUNCH_NS, LAUNCHES)
    optional = (E2E,)
    thresholds: ClassVar[Mapping[str, float]] = {
        "overhead_pct_high": 20.0,
        "overhead_pct_critical": 40.0,
    }
    priority = 88

    def trigger(self, view: View) -> bool:
        # One launch has to be paid for: there is nothing to fuse or to replay.
        return (
            view.need(OVERHEAD) > self.thresholds["overhead_pct_high"] and view.need(LAUNCHES) > 1
        )

    def analyze(self, view: View) -> Analysis:
        overhead, launches = view.need(OVERHEAD), view.need(LAUNCHES)
        few_gaps = _gap_share(view) >= 0.5 * overhead and _num_gaps(view) <= 0.5 * launches
        return Analysis(
            severity="critical" if overhead > self.thresholds["overhead_pct_critical"] else "high",
            summary=f"The device is idle for {overhead:.0f} % of the call, over {launches:.0f} "
            f"launches of {view.need(LAUNCH_NS) / 1000:.1f} us of host time each.",
            root_cause="The host cannot enqueue as fast as the device drains.",
            recommendations=(
                "Fuse kernels: fewer launches for the same work.",
                "Replay a CUDA graph.",
                "Take allocations, .item() and Python loops out of forward.",
            ),
            expected_improvement=f"up to {_without(overhead):.1f}x",
            observed={
                "launch_overhead_pct": overhead,
                "launches": launches,
                "avg_launch_ns": view.need(LAUNCH_NS),
            },
            code_example=GRAPH_EXAMPLE,
            cause="idle:launches",
            call_share=overhead / 100.0,
            explains=frozenset() if few_gaps else frozenset({"idle:gaps"}),
        )


@ToolRegistry.register
class GpuIdleGap(ProfilingTool):
    """The device is idle in gaps that stand out: above max(1 % of the call, 5 us)."""

    name = "gpu_idle_gap"
    title = "Idle gaps"
    source = "timeline"
    scope = "call"
    required = (E2E,)
    optional = (LAUNCHES, OVERHEAD)
    thresholds: ClassVar[Mapping[str, float]] = {
        "gaps_pct_high": 10.0,
        "gaps_pct_critical": 30.0,
        "gap_least_us": 5.0,
    }
    priority = 78

    def trigger(self, view: View) -> bool:
        return _gap_share(view) > self.thresholds["gaps_pct_high"]

    def analyze(self, view: View) -> Analysis:
        gaps, share = view.timeline.gaps_us, _gap_share(view)
        overhead, launches = view.get(OVERHEAD), view.get(LAUNCHES)
        own = (
            overhead is not None
            and launches is not None
            and share >= 0.5 * overhead
            and len(gaps) <= 0.5 * launches
        )
        return Analysis(
            severity="critical" if share > self.thresholds["gaps_pct_critical"] else "high",
            summary=f"{_num_gaps(view)} gap(s), {sum(gaps):.0f} us together and {max(gaps):.0f} us "
            f"at most, leave the device idle for {share:.0f} % of the call.",
            root_cause="The host does something between kernels: an allocation, a wait, Python.",
            recommendations=(
                "Allocate buffers once, in the constructor or on first use.",
                "One stream and no waits within forward.",
                "Replay a CUDA graph.",
            ),
            expected_improvement=f"up to {_without(share):.1f}x",
            observed={
                "gap_total_us": sum(gaps),
                "gap_max_us": max(gaps),
                "num_gaps": float(len(gaps)),
                "gaps_pct": share,
            },
            cause="idle:gaps",
            call_share=share / 100.0,
            explains=frozenset({"idle:launches"}) if own else frozenset(),
        )


@ToolRegistry.register
class SyncOverhead(ProfilingTool):
    """Forward blocks the host on the device.

    While the device works the host may wait for it: that is no cost. What blocking calls cost is
    idle time of the device after them, so no more than all its idle time.
    """

    name = "sync_overhead"
    title = "Synchronisation within forward"
    source = "timeline"
    scope = "call"
    required = (SYNCS, E2E)
    optional = (SYNC_US, LAUNCHES, OVERHEAD)
    thresholds: ClassVar[Mapping[str, float]] = {
        "syncs": 1.0,
        "sync_pct_high": 5.0,
        "gaps_pct_critical": 30.0,
        "overhead_pct_critical": 40.0,
    }
    priority = 68

    def trigger(self, view: View) -> bool:
        return view.need(SYNCS) >= self.thresholds["syncs"]

    def analyze(self, view: View) -> Analysis:
        syncs, e2e_us = view.need(SYNCS), view.need(E2E)
        sync_us, launches, idle_pct = view.get(SYNC_US), view.get(LAUNCHES), view.get(OVERHEAD)
        observed = {"syncs": syncs, "e2e_us": e2e_us}
        gaps_pct = cost_pct = _gap_share(view)
        if sync_us is not None:
            observed["sync_us"] = sync_us
            waited_pct = 100.0 * sync_us / e2e_us
            cost_pct = max(cost_pct, waited_pct if idle_pct is None else min(waited_pct, idle_pct))
        causes_idle = launches is None or launches <= FEW_LAUNCHES_PER_SYNC * syncs
        severity: Severity = "high" if cost_pct > self.thresholds["sync_pct_high"] else "medium"
        if causes_idle and (idle_pct or 0.0) > self.thresholds["overhead_pct_critical"]:
            cost_pct = max(cost_pct, idle_pct or 0.0)
            severity = "critical"  # that of the launches that it explains
        if causes_idle and gaps_pct > self.thresholds["gaps_pct_critical"]:
            severity = "critical"  # that of the gaps that it explains
        return Analysis(
            severity=severity,
            summary=f"{syncs:.0f} call(s) within forward block the host until the device is done"
            + ("." if sync_us is None else f", {100 * sync_us / e2e_us:.0f} % of the call.")
            + ("" if idle_pct is None else f" The device is idle for {idle_pct:.0f} % of it."),
            root_cause="The host waits for the device within forward, and the device then for it.",
            recommendations=(
                "Take .item(), .cpu(), .tolist(), print and torch.cuda.synchronize out of forward.",
                "Keep scalars on the device; branch by torch.where.",
                "Copies of blocking kinds: non_blocking, from pinned memory.",
            ),
            expected_improvement=f"up to {_without(cost_pct):.1f}x",
            observed=observed,
            call_share=min(1.0, cost_pct / 100.0),
            explains=frozenset({"idle:gaps", "idle:launches"}) if causes_idle else frozenset(),
        )


def _gap_share(view: View) -> float:
    """Per cent of the call in gaps that stand out; 0 where there are none."""
    return 100.0 * sum(view.timeline.gaps_us) / view.need(E2E)


def _num_gaps(view: View) -> int:
    return len(view.timeline.gaps_us)


def _without(pct: float) -> float:
    """The speed-up if so much of the call fell away: 1 / (1 - p / 100)."""
    return 1.0 / max(1.0 - pct / 100.0, 0.01)
