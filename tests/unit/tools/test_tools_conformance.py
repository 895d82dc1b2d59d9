"""Every tool under the conformance suite of kopt.testing, with evidence on which it speaks."""

from __future__ import annotations

from dataclasses import replace

from kopt.evidence import Evidence, Timeline
from kopt.testing.planted_evidence import MATMUL, healthy_metrics, one_kernel, planted_evidence
from kopt.testing.tool_suite import ToolSuite
from kopt.tools import ToolRegistry, diagnose

PLANTED = {name: evidence for name, (evidence, _) in planted_evidence().items()}
SASS = {"LDG": 4, "LDG.128": 4, "FFMA": 996, "BAR": 0, "STL": 0, "LDL": 0}
SLOW = {
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
    "smsp__warps_eligible.avg.per_cycle_active": 2.0,
}
QUIET = Timeline(
    e2e_us=130.0,
    busy_us=124.0,
    launches=1,
    launch_overhead_pct=4.6,
    avg_launch_ns=4_000.0,
    syncs=0,
    sync_us=0.0,
    memcpy_us=0.0,
    memset_us=0.0,
)
HEALTHY = one_kernel(healthy_metrics(), sass=SASS, timeline=QUIET)
HEALTHY_SLOW = replace(HEALTHY, time_us=200.0)


def seen(changes=None, *, stalls=None, sass=SASS, **more) -> Evidence:
    return one_kernel(healthy_metrics(changes, stalls=stalls), sass=sass, **more)


def at_work(**changes) -> Evidence:
    return replace(HEALTHY, timeline=replace(QUIET, **changes))


def suite(name: str, triggering: Evidence, healthy: Evidence = HEALTHY_SLOW) -> type[ToolSuite]:
    class Suite(ToolSuite):
        tool = ToolRegistry.get(name)

        def triggering(self) -> Evidence:
            return triggering

        def healthy(self) -> Evidence:
            return healthy

    return Suite


TestWarpStall = suite("warp_stall", seen(SLOW, stalls={"long_scoreboard": 41.0}))
TestBarrierStall = suite("barrier_stall", seen(SLOW, stalls={"barrier": 31.0}))
TestTensorCores = suite("tensor_core_underutilization", PLANTED["no_tensor_cores"])
TestRegisters = suite(
    "high_register_usage",
    seen({"launch__registers_per_thread": 96.0, "launch__occupancy_limit_registers": 5.0}),
)
TestCoalescing = suite("memory_coalescing", PLANTED["uncoalesced"])
TestVectorization = suite(
    "vectorization",
    seen({**SLOW, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 2_097_152.0}, sass={}),
)
TestOccupancy = suite("occupancy_limiter", PLANTED["one_block"])
TestBankConflicts = suite("shared_bank_conflict", PLANTED["bank_conflicts"])
TestLaunches = suite("launch_overhead", PLANTED["hundred_launches"])
TestGaps = suite("gpu_idle_gap", at_work(gaps_us=(20.0,)))
TestSyncs = suite("sync_overhead", at_work(syncs=1))
TestCopies = suite("memcpy_overhead", at_work(memcpy_us=10.0))
TestFragments = suite("kernel_fragmentation", PLANTED["hundred_launches"])
TestWgmma = suite("wgmma_instruction", PLANTED["hmma_on_hopper"])
TestSpill = suite("register_spill", PLANTED["spilling"])
TestSol = suite("sol_reached", replace(HEALTHY, time_us=120.0))
TestWaste = suite("algorithmic_waste", seen({"dram__bytes_read.sum": 1e9}))
TestWaves = suite("wave_quantization", seen({**SLOW, "launch__waves_per_multiprocessor": 1.1}))
TestLanes = suite("divergence", seen({"smsp__thread_inst_executed_per_inst_executed.ratio": 20.0}))
TestEnergyConflicts = suite(
    "energy_bank_conflict",
    seen(
        {
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 2e6,
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 1e7,
        }
    ),
)
TestEnergySpill = suite(
    "energy_register_spill",
    seen({"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 1e6}, stalls={"long_scoreboard": 10.0}),
)
TestEnergyUncoalesced = suite(
    "energy_uncoalesced",
    seen(
        {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 16.0},
        stalls={"long_scoreboard": 10.0},
    ),
)
TestEnergyBarrier = suite("energy_redundant_barrier", seen(sass={"BAR": 6, "FFMA": 994}))
TestEnergyBloat = suite("energy_instruction_bloat", seen({"smsp__thread_inst_executed.sum": 2e9}))


def test_every_tool_is_under_the_suite() -> None:
    under = {
        each.tool.name
        for name, each in globals().items()
        if name.startswith("Test") and name != "ToolSuite"
    }
    assert under == {name for name in ToolRegistry.names() if "/" not in name}


def test_a_healthy_product_of_matrices_has_no_finding_of_speed() -> None:
    changes = {
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 70.0,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 50.0,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 70.0,
        "sm__inst_executed_pipe_tensor_op_gmma.sum": 1e6,
        "launch__registers_per_thread": 168.0,
        "launch__occupancy_limit_registers": 1.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 18.0,
        "dram__bytes_read.sum": 1.4e8,
        "dram__bytes_write.sum": 6.7e7,
    }
    evidence = seen(changes, stalls={"gmma": 55.0}, sass={"HGMMA": 64, "EXIT": 1}, work=MATMUL)
    assert diagnose(evidence, max_findings=None).findings == ()
