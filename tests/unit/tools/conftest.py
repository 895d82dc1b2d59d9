"""Asking one tool about one kernel whose counters differ from a healthy one's in a few places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kopt.evidence import Evidence
from kopt.finding import Finding
from kopt.testing.planted_evidence import healthy_metrics, one_kernel
from kopt.tools import ToolRegistry
from kopt.tools.diagnosis import diagnose

IDLE = {
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
}
"""Far from every roof, so that guards for kernels near one let tools speak."""


def ask(name: str, evidence: Evidence) -> Finding | tuple[str, ...] | None:
    """The tool's finding; the figures that it lacked; or None where it has nothing to say."""
    tool = ToolRegistry.get(name)
    diagnosis = diagnose(evidence, tools=[tool], max_findings=None)
    found = (*diagnosis.findings, *diagnosis.remarks, *diagnosis.energy_notes)
    if found:
        return found[0]
    return diagnosis.silent[0].missing if diagnosis.silent else None


@pytest.fixture
def kernel() -> Callable[..., Finding | tuple[str, ...] | None]:
    """Ask a tool about a kernel: `kernel("warp_stall", {counter: value}, stalls={...})`."""

    def asked(name, changes=None, *, stalls=None, **more):
        evidence = one_kernel(healthy_metrics({**IDLE, **(changes or {})}, stalls=stalls), **more)
        # Of no known class: every tool is asked.
        roofline = evidence.roofline
        assert roofline is not None
        anyone = replace(roofline, bottleneck=None, theoretical=None, measured=None)
        if roofline.theoretical == "compute":
            anyone = roofline
        return ask(name, replace(evidence, roofline=anyone))

    return asked
