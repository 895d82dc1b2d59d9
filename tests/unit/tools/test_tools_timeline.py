"""The host beside the device: launches, gaps, blocking calls, copies, short kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kopt.evidence import Evidence, KernelEvidence, Roofline, Timeline
from kopt.tools import ToolRegistry, diagnose

QUIET = Timeline(
    e2e_us=1000.0,
    busy_us=990.0,
    launches=20,
    launch_overhead_pct=1.0,
    avg_launch_ns=4_000.0,
    syncs=0,
    sync_us=0.0,
    memcpy_us=0.0,
    memset_us=0.0,
)


def call(*kernels: KernelEvidence, roofline: Roofline | None = None, **changes) -> Evidence:
    timeline = replace(QUIET, **changes)
    return Evidence(
        device="NVIDIA H200",
        arch="sm_90",
        level="timeline",
        kernels=kernels,
        timeline=timeline,
        roofline=roofline,
    )


def ask(name: str, evidence: Evidence):
    diagnosis = diagnose(evidence, tools=[ToolRegistry.get(name)])
    if diagnosis.findings:
        return diagnosis.findings[0].severity
    return diagnosis.silent[0].missing if diagnosis.silent else None


@pytest.mark.parametrize(
    ("pct", "severity"), [(20.0, None), (20.1, "high"), (40.0, "high"), (40.1, "critical")]
)
def test_launch_overhead_speaks_above_20_per_cent(pct, severity) -> None:
    assert ask("launch_overhead", call(launch_overhead_pct=pct)) == severity


def test_one_launch_has_to_be_paid_for() -> None:
    assert ask("launch_overhead", call(launch_overhead_pct=60.0, launches=1)) is None
    assert ask("launch_overhead", call(launch_overhead_pct=60.0, launches=2)) == "critical"


def test_the_estimate_of_launch_overhead_is_what_is_left_without_it() -> None:
    # 1 / (1 - 0.5) = 2.
    tools = [ToolRegistry.get("launch_overhead")]
    (found,) = diagnose(call(launch_overhead_pct=50.0), tools=tools).findings
    assert found.expected_improvement == "up to 2.0x"


@pytest.mark.parametrize(
    ("gaps", "severity"),
    [((60.0, 40.0), None), ((60.0, 41.0), "high"), ((300.0,), "high"), ((301.0,), "critical")],
)
def test_gaps_speak_above_a_tenth_of_the_call(gaps, severity) -> None:
    assert ask("gpu_idle_gap", call(gaps_us=gaps)) == severity


def test_any_blocking_call_within_forward_is_told() -> None:
    idle = {"busy_us": 900.0, "launch_overhead_pct": 10.0}
    assert ask("sync_overhead", call(syncs=1, sync_us=50.0, **idle)) == "medium"
    assert ask("sync_overhead", call(syncs=1, sync_us=51.0, **idle)) == "high"
    # The device works all the while: the host may wait for it.
    assert ask("sync_overhead", call(syncs=1, sync_us=51.0)) == "medium"
    assert ask("sync_overhead", call(syncs=1, sync_us=51.0, launch_overhead_pct=None)) == "high"
    assert ask("sync_overhead", call(syncs=0)) is None
    assert ask("sync_overhead", call(syncs=None)) == ("timeline.syncs",)


@pytest.mark.parametrize(
    ("copied_us", "severity"), [(40.0, None), (41.0, "medium"), (190.0, "medium"), (191.0, "high")]
)
def test_copies_and_fills_together_speak_above_5_per_cent(copied_us, severity) -> None:
    assert ask("memcpy_overhead", call(memcpy_us=copied_us, memset_us=10.0)) == severity


def test_unknown_fills_are_not_zero() -> None:
    assert ask("memcpy_overhead", call(memset_us=None)) == ("timeline.memset_us",)
    assert ask("memcpy_overhead", call(memcpy_us=60.0, memset_us=None)) == "medium"


def test_short_kernels_are_told_below_10_us_on_average() -> None:
    # 990 us of busy time: 99 launches are 10 us each.
    assert ask("kernel_fragmentation", call(launches=99)) is None
    assert ask("kernel_fragmentation", call(launches=100)) == "high"
    assert ask("kernel_fragmentation", call(launches=2, busy_us=19.0)) == "medium"
    assert ask("kernel_fragmentation", call(launches=1, busy_us=9.0)) is None


def test_intermediates_are_what_moves_beyond_inputs_and_outputs() -> None:
    def moved(read: float) -> Evidence:
        metrics = {"dram__bytes_read.sum": read, "dram__bytes_write.sum": 20.0}
        kernel = KernelEvidence(name="k", owner="user", launches=2, time_us=900.0, metrics=metrics)
        return call(kernel, roofline=Roofline(bytes=140.0))

    # Two launches move 2 · (read + 20); 140 of it are compulsory. 30 % of 200 are 60.
    assert ask("kernel_fragmentation", moved(80.0)) is None
    assert ask("kernel_fragmentation", moved(81.0)) == "medium"


def test_without_times_fragmentation_is_unknown() -> None:
    assert ask("kernel_fragmentation", call(busy_us=None)) == ("timeline.busy_us",)


def first(evidence: Evidence) -> list[str]:
    names = ("launch_overhead", "gpu_idle_gap", "sync_overhead")
    tools = ToolRegistry.tools(names)
    return [finding.tool for finding in diagnose(evidence, tools=tools).findings]


def test_idle_time_has_one_cause() -> None:
    # One long gap of few launches is a gap; many small ones are launches.
    assert first(call(launch_overhead_pct=45.0, gaps_us=(400.0,))) == ["gpu_idle_gap"]
    small = call(launch_overhead_pct=45.0, launches=30, gaps_us=(20.0,) * 20)
    assert first(small) == ["launch_overhead"]
    # A blocking call that explains the gap takes its place and its severity.
    blocking = call(launch_overhead_pct=45.0, gaps_us=(400.0,), syncs=2, sync_us=300.0)
    assert first(blocking) == ["sync_overhead"]
    # Among a hundred launches one blocking call is not why the device is idle.
    many = call(launch_overhead_pct=45.0, launches=100, syncs=1, sync_us=10.0)
    assert first(many) == ["launch_overhead", "sync_overhead"]
