"""What dominates a call's time comes first, and nothing weighs more than its share can be worth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kopt.evidence import Evidence, KernelEvidence, Roofline, Timeline
from kopt.testing.planted_evidence import MATMUL, healthy_metrics, one_kernel
from kopt.tools import ToolRegistry, diagnose
from kopt.tools.hardware import find_gpu
from kopt.tools.roofline import analyse_reference
from kopt.tools.weight import bounded, device_share, kernel_share

LD_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
ISSUE = "smsp__issue_active.avg.per_cycle_active"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
HMMA = "sm__inst_executed_pipe_tensor_op_hmma.sum"
LATE = {DRAM: 20.0, MEMORY: 30.0, SM: 10.0}
"""Far from every roof: warps that wait for loads are told of."""
LD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
LD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SCATTERED = {**LATE, LD_BYTES: 4.0}


def timeline(*, e2e_us: float, busy_us: float, launches: int = 3, **more) -> Timeline:
    idle_pct = 100.0 * (1.0 - busy_us / e2e_us)
    made = Timeline(
        e2e_us=e2e_us,
        busy_us=busy_us,
        launches=launches,
        launch_overhead_pct=idle_pct,
        avg_launch_ns=5_000.0,
        syncs=0,
        sync_us=0.0,
        memcpy_us=0.0,
        memset_us=0.0,
    )
    return replace(made, **more)


def call(changes, *, time_us: float, seen: Timeline, share: float = 1.0) -> Evidence:
    evidence = one_kernel(healthy_metrics(changes), timeline=seen)
    (kernel,) = evidence.kernels
    return replace(evidence, kernels=(replace(kernel, time_us=time_us, share=share),))


def found(evidence: Evidence) -> list[tuple[str, str]]:
    return [(each.tool, each.severity) for each in diagnose(evidence, max_findings=None).findings]


@pytest.mark.parametrize(
    ("share", "severity"),
    [
        (1.0, "critical"),
        (0.5, "critical"),
        (0.49, "high"),
        (0.25, "high"),
        (0.24, "medium"),
        (0.1, "medium"),
        (0.09, "low"),
        (0.0, "low"),
    ],
)
def test_a_severity_is_bounded_by_what_the_share_can_be_worth(share, severity) -> None:
    assert bounded("critical", share=share) == severity


def test_a_mild_finding_is_not_made_worse_by_its_share() -> None:
    assert bounded("medium", share=1.0) == "medium"
    assert bounded("low", share=0.3) == "low"


def test_shares_are_of_the_call_s_time_and_of_busy_time_where_one_launch_is_paid_for() -> None:
    several = call({}, time_us=20.0, seen=timeline(e2e_us=100.0, busy_us=40.0))
    assert device_share(several) == pytest.approx(0.4)
    assert kernel_share(several, several.kernels[0]) == pytest.approx(0.2)
    alone = call({}, time_us=4.0, seen=timeline(e2e_us=10.0, busy_us=4.0, launches=1))
    assert device_share(alone) == 1.0
    assert kernel_share(alone, alone.kernels[0]) == 1.0


def test_without_a_timeline_a_kernel_s_share_is_that_of_the_device_time() -> None:
    evidence = one_kernel(healthy_metrics())
    assert device_share(evidence) == 1.0
    assert kernel_share(evidence, evidence.kernels[0]) == 1.0
    assert kernel_share(evidence, replace(evidence.kernels[0], share=0.3)) == pytest.approx(0.3)
    assert kernel_share(evidence, replace(evidence.kernels[0], share=None)) == 1.0


def test_a_read_back_that_leaves_the_device_idle_goes_before_stalls_in_short_kernels() -> None:
    # The kernel works 8 of 100 us: even gone it would gain a twelfth.
    seen = timeline(e2e_us=100.0, busy_us=25.0, syncs=1, sync_us=6.0, gaps_us=(40.0, 15.0, 10.0))
    assert found(call(LATE, time_us=8.0, seen=seen, share=0.33))[:1] == [
        ("sync_overhead", "critical")
    ]
    assert ("warp_stall", "low") in found(call(LATE, time_us=8.0, seen=seen, share=0.33))


def test_a_small_wait_beside_a_long_kernel_does_not_hide_the_kernel() -> None:
    # The host waits 950 us for a kernel that takes 960: the device is idle for 20 of 1000.
    seen = timeline(
        e2e_us=1000.0, busy_us=980.0, launches=2, syncs=1, sync_us=950.0, gaps_us=(15.0,)
    )
    told = found(call(SCATTERED, time_us=960.0, seen=seen))
    assert told[0] == ("memory_coalescing", "critical")
    assert ("sync_overhead", "medium") in told


def test_a_wait_for_a_device_that_works_all_the_time_is_no_cost() -> None:
    tool = [ToolRegistry.get("sync_overhead")]
    busy = timeline(e2e_us=1000.0, busy_us=990.0, syncs=1, sync_us=980.0)
    (mild,) = diagnose(call({}, time_us=990.0, seen=busy), tools=tool).findings
    assert mild.severity == "medium"
    idle = timeline(e2e_us=1000.0, busy_us=900.0, syncs=1, sync_us=980.0)
    (worse,) = diagnose(call({}, time_us=900.0, seen=idle), tools=tool).findings
    assert worse.severity == "high"


def test_waits_take_the_severity_of_the_idle_time_that_they_explain_though_gaps_are_small() -> None:
    # Five waits over ten launches: gaps too short to stand out, yet half of the call is idle.
    seen = timeline(e2e_us=200.0, busy_us=100.0, launches=10, syncs=5, sync_us=20.0)
    told = found(call(LATE, time_us=90.0, seen=seen))
    assert told[0] == ("sync_overhead", "critical")
    assert "launch_overhead" not in [name for name, _ in told]


def test_of_idle_time_and_a_kernel_the_one_that_holds_most_of_the_call_goes_first() -> None:
    mostly_idle = timeline(e2e_us=100.0, busy_us=40.0, launches=12)
    told = found(call(SCATTERED, time_us=38.0, seen=mostly_idle))
    assert told[:2] == [("launch_overhead", "critical"), ("memory_coalescing", "high")]
    mostly_busy = timeline(e2e_us=100.0, busy_us=58.0, launches=12)
    told = found(call(SCATTERED, time_us=56.0, seen=mostly_busy))
    assert told[:2] == [("memory_coalescing", "critical"), ("launch_overhead", "critical")]


def test_a_kernel_alone_in_its_call_keeps_its_severity_however_short() -> None:
    seen = timeline(e2e_us=12.0, busy_us=4.0, launches=1)
    assert found(call(SCATTERED, time_us=4.0, seen=seen))[0] == ("memory_coalescing", "critical")


def test_of_two_kernels_the_longer_one_s_fault_goes_first() -> None:
    wide = one_kernel(healthy_metrics(SCATTERED)).kernels[0]
    slow = one_kernel(healthy_metrics({**LATE, ISSUE: 0.1})).kernels[0]
    evidence = Evidence(
        device="NVIDIA H200",
        arch="sm_90",
        level="ncu",
        kernels=(
            replace(slow, name="long", time_us=700.0, share=0.7),
            replace(wide, name="short", time_us=300.0, share=0.3),
        ),
        timeline=timeline(e2e_us=1000.0, busy_us=1000.0, launches=2),
        roofline=Roofline(bottleneck="memory", theoretical="memory"),
    )
    first, second = diagnose(evidence).findings[:2]
    assert (first.tool, first.kernel, first.severity) == ("warp_stall", "long", "critical")
    assert (second.tool, second.kernel, second.severity) == ("memory_coalescing", "short", "high")


def test_traffic_of_a_call_weighs_as_much_as_the_device_works() -> None:
    # Four times the bytes, in a call in which the device works a fifth of the time.
    traffic = {"dram__bytes_read.sum": 1.6e9, "dram__bytes_write.sum": 6e8}
    tool = [ToolRegistry.get("algorithmic_waste")]
    seen = timeline(e2e_us=5000.0, busy_us=1000.0)
    (mild,) = diagnose(call(traffic, time_us=1000.0, seen=seen), tools=tool).findings
    (full,) = diagnose(one_kernel(healthy_metrics(traffic)), tools=tool).findings
    assert (mild.severity, full.severity) == ("medium", "high")


PRODUCTS = {"HMMA": 256, "LDSM": 64, "LDGSTS": 32, "BAR": 4, "EXIT": 1}


def products(changes, *, sass=None, **more) -> Evidence:
    tensor = {**LATE, HMMA: 3.3e7, TENSOR: 52.0, ISSUE: 0.3}
    evidence = one_kernel(
        healthy_metrics({**tensor, **changes}, stalls={"long_scoreboard": 28.0}),
        work=MATMUL,
        sass=PRODUCTS if sass is None else sass,
    )
    return replace(evidence, roofline=analyse_reference(MATMUL, find_gpu("NVIDIA H200")), **more)


def test_products_of_one_warp_on_hopper_with_perfect_copies_are_the_finding() -> None:
    # All loads are copies (cp.async), whose bytes the counter of plain loads does not see: 0.
    # 16 sectors a request are 16 bytes a lane.
    told = found(products({LD_BYTES: 0.0, LD_SECTORS: 1.28e8, LD_REQUESTS: 8e6}))
    assert told[0] == ("wgmma_instruction", "high")
    assert "memory_coalescing" not in [name for name, _ in told]


def test_products_that_wait_for_dram_are_not_told_of_their_generation() -> None:
    at_the_roof = products({DRAM: 80.0, MEMORY: 80.0, TENSOR: 30.0})
    assert "wgmma_instruction" not in [name for name, _ in found(at_the_roof)]
    below = products({DRAM: 60.0, MEMORY: 70.0})
    assert ("wgmma_instruction", "high") in found(below)


def test_the_generation_of_products_in_a_kernel_that_hardly_runs_is_not_told() -> None:
    evidence = products({})
    (kernel,) = evidence.kernels
    tail = replace(kernel, share=0.05)
    main = KernelEvidence(name="gemm", owner="library", launches=1, share=0.95, metrics={HMMA: 1.0})
    told = found(replace(evidence, kernels=(main, tail)))
    assert "wgmma_instruction" not in [name for name, _ in told]
