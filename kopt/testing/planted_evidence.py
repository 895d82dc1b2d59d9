"""Evidence made by hand: a healthy kernel's counters, and kernels with one fault planted in each.

The healthy one is an elementwise `exp` over 2**26 fp32 values on an H200, as Nsight Compute counted
it. The others change what the fault changes, by estimate: they show which tool should speak first,
and are no measurement.
"""

from __future__ import annotations

from collections.abc import Mapping

from kopt.evidence import Evidence, KernelEvidence, Timeline
from kopt.tools.counters import CORE_COUNTERS, STALL_REASONS, stall_counter
from kopt.tools.hardware import find_gpu
from kopt.tools.roofline import Work, analyse_reference

DEVICE = "NVIDIA H200"
ELEMENTS = 2.0**26
ELEMENTWISE = Work(vector_flops=4 * ELEMENTS, bytes=8 * ELEMENTS)
"""Reads and writes each fp32 element once."""
MATMUL_FLOPS = 2 * 4096.0**3
MATMUL = Work(matrix_flops=(("tf32", MATMUL_FLOPS),), bytes=3 * 4 * 4096.0**2)

_HEALTHY: dict[str, float] = {
    "gpu__time_duration.sum": 123_968.0,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 13.38,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 85.89,
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 85.89,
    "l1tex__throughput.avg.pct_of_peak_sustained_active": 30.63,
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": 91.63,
    "gpc__cycles_elapsed.max": 240_348.0,
    "sm__cycles_active.avg": 233_959.0,
    "smsp__issue_active.avg.per_cycle_active": 0.14,
    "smsp__warps_eligible.avg.per_cycle_active": 0.16,
    "smsp__warps_active.avg.per_cycle_active": 13.60,
    "smsp__average_warp_latency_per_inst_issued.ratio": 99.71,
    "smsp__inst_executed.sum": 17_039_360.0,
    "smsp__thread_inst_executed.sum": 545_259_520.0,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 85.83,
    "sm__maximum_warps_per_active_cycle_pct": 100.0,
    "launch__occupancy_limit_registers": 21.0,
    "launch__occupancy_limit_shared_mem": 32.0,
    "launch__occupancy_limit_warps": 16.0,
    "launch__occupancy_limit_blocks": 32.0,
    "launch__occupancy_limit_barriers": 32.0,
    "launch__registers_per_thread": 17.0,
    "launch__shared_mem_per_block_allocated": 1_024.0,
    "launch__waves_per_multiprocessor": 31.03,
    "launch__grid_size": 65_536.0,
    "launch__block_size": 128.0,
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active": 5.52,
    "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active": 7.64,
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": 13.58,
    "dram__bytes_read.sum": 268_452_352.0,
    "dram__bytes_write.sum": 243_715_584.0,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 8_388_608.0,
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 524_288.0,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 8_388_608.0,
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 524_288.0,
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 32.0,
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio": 32.0,
    "lts__t_sector_hit_rate.pct": 51.63,
    "smsp__thread_inst_executed_per_inst_executed.ratio": 32.0,
}
_HEALTHY_STALLS = {"long_scoreboard": 83.8, "drain": 8.3, "short_scoreboard": 4.2, "wait": 1.5}
_NOT_BUSY = {
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 35.0,
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
}


def healthy_metrics(
    changes: Mapping[str, float | None] | None = None,
    *,
    stalls: Mapping[str, float] | None = None,
) -> dict[str, float | None]:
    """Return every core counter of the healthy kernel, some changed.

    Args:
        changes: counter to its value; None makes it unknown.
        stalls: reason to per cent of active warps, in place of the healthy ones; the rest are 0.
    """
    shares = _HEALTHY_STALLS if stalls is None else stalls
    return {
        **dict.fromkeys(CORE_COUNTERS, 0.0),
        **_HEALTHY,
        **{stall_counter(reason): shares.get(reason, 0.0) for reason in STALL_REASONS},
        **(changes or {}),
    }


def one_kernel(
    metrics: Mapping[str, float | None],
    *,
    work: Work = ELEMENTWISE,
    sass: Mapping[str, int] | None = None,
    spill_bytes: int | None = 0,
    timeline: Timeline | None = None,
) -> Evidence:
    """Return the evidence of a call of one kernel on an H200."""
    return Evidence(
        device=DEVICE,
        arch="sm_90",
        level="ncu",
        kernels=(
            KernelEvidence(
                name="k",
                owner="user",
                launches=1,
                time_us=(metrics.get("gpu__time_duration.sum") or 0.0) / 1000.0,
                share=1.0,
                metrics=dict(metrics),
                sass=dict(sass or {}),
                spill_bytes=spill_bytes,
            ),
        ),
        timeline=timeline,
        roofline=analyse_reference(work, find_gpu(DEVICE)),
    )


def planted_evidence() -> dict[str, tuple[Evidence, str | None]]:
    """Return each planted kernel by name, with the tool that should be first; None: no finding."""
    wide = {"LDG": 2, "LDG.128": 2, "STG": 2, "STG.128": 2, "FMUL": 24, "MUFU": 8, "EXIT": 1}
    return {
        "healthy": (one_kernel(healthy_metrics(), sass=wide, timeline=_TIMELINE), None),
        "uncoalesced": (_uncoalesced(), "memory_coalescing"),
        "bank_conflicts": (_bank_conflicts(), "shared_bank_conflict"),
        "spilling": (_spilling(), "register_spill"),
        "one_block": (_one_block(), "occupancy_limiter"),
        "no_tensor_cores": (_no_tensor_cores(), "tensor_core_underutilization"),
        "hmma_on_hopper": (_hmma(), "wgmma_instruction"),
        "sync_in_forward": (_sync(), "sync_overhead"),
        "hundred_launches": (_launches(), "launch_overhead"),
        "divergent": (_divergent(), "divergence"),
    }


_TIMELINE = Timeline(
    e2e_us=130.0,
    busy_us=124.0,
    launches=1,
    launch_overhead_pct=100 * 6 / 130,
    launch_api_pct=3.0,
    avg_launch_ns=4_000.0,
    syncs=0,
    sync_us=0.0,
    memcpy_us=0.0,
    memset_us=0.0,
)


def _uncoalesced() -> Evidence:
    # Each lane of a warp reads another row: 32 sectors a request, 4 bytes of each.
    changes = {
        **_NOT_BUSY,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 60.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 75.0,
        "gpu__time_duration.sum": 900_000.0,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 67_108_864.0,
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 2_097_152.0,
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 4.0,
        "dram__bytes_read.sum": 2.1e9,
    }
    return one_kernel(healthy_metrics(changes, stalls={"long_scoreboard": 70.0, "wait": 5.0}))


def _bank_conflicts() -> Evidence:
    # A tile of [32][32] is read by columns: 31 of 32 wavefronts are repeats.
    changes = {
        **_NOT_BUSY,
        "l1tex__throughput.avg.pct_of_peak_sustained_active": 95.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 90.0,
        "gpu__time_duration.sum": 700_000.0,
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 65_011_712.0,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 67_108_864.0,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": 2_097_152.0,
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 2_097_152.0,
    }
    stalls = {"short_scoreboard": 30.0, "mio_throttle": 35.0, "barrier": 10.0}
    return one_kernel(healthy_metrics(changes, stalls=stalls))


def _spilling() -> Evidence:
    changes = {
        **_NOT_BUSY,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 70.0,
        "launch__registers_per_thread": 255.0,
        "launch__occupancy_limit_registers": 2.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 12.0,
        "sm__maximum_warps_per_active_cycle_pct": 12.5,
        "sass__inst_executed_register_spilling": 5.0e7,
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 6.0e7,
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": 3.0e7,
        "dram__bytes_write.sum": 9.0e8,
    }
    return one_kernel(
        healthy_metrics(changes, stalls={"long_scoreboard": 65.0, "lg_throttle": 10.0}),
        sass={"STL": 300, "LDL": 450, "FFMA": 2000, "LDG": 16, "LDG.128": 16, "EXIT": 1},
        spill_bytes=4_608,
    )


def _one_block() -> Evidence:
    changes = {
        **_NOT_BUSY,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 0.3,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 0.5,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 0.4,
        "gpu__time_duration.sum": 20_000_000.0,
        "launch__grid_size": 1.0,
        "launch__block_size": 1024.0,
        "launch__waves_per_multiprocessor": 0.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 50.0,
    }
    return one_kernel(healthy_metrics(changes, stalls={"long_scoreboard": 80.0}))


def _no_tensor_cores() -> Evidence:
    changes = {
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 75.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 55.0,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 8.0,
        "smsp__issue_active.avg.per_cycle_active": 0.75,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 1.4,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": MATMUL_FLOPS / 2,
        "launch__registers_per_thread": 120.0,
        "launch__occupancy_limit_registers": 4.0,
        "dram__bytes_read.sum": 1.4e8,
        "dram__bytes_write.sum": 6.7e7,
    }
    return one_kernel(
        healthy_metrics(changes, stalls={"short_scoreboard": 20.0, "math_pipe_throttle": 45.0}),
        work=MATMUL,
        sass={"FFMA": 4096, "LDS": 512, "LDG": 32, "LDG.128": 32, "BAR": 2, "EXIT": 1},
    )


def _hmma() -> Evidence:
    changes = {
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 55.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 45.0,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 12.0,
        "smsp__issue_active.avg.per_cycle_active": 0.45,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 45.0,
        "sm__inst_executed_pipe_tensor_op_hmma.sum": 3.3e7,
        "dram__bytes_read.sum": 1.4e8,
        "dram__bytes_write.sum": 6.7e7,
    }
    return one_kernel(
        healthy_metrics(changes, stalls={"long_scoreboard": 15.0, "math_pipe_throttle": 30.0}),
        work=MATMUL,
        sass={"HMMA": 256, "LDSM": 64, "LDGSTS": 32, "BAR": 4, "EXIT": 1},
    )


def _sync() -> Evidence:
    timeline = Timeline(
        e2e_us=300.0,
        busy_us=160.0,
        launches=3,
        launch_overhead_pct=100 * 140 / 300,
        avg_launch_ns=4_500.0,
        gaps_us=(120.0,),
        syncs=1,
        sync_us=90.0,
        memcpy_us=2.0,
        memset_us=0.0,
    )
    return one_kernel(healthy_metrics(), timeline=timeline)


def _launches() -> Evidence:
    timeline = Timeline(
        e2e_us=620.0,
        busy_us=250.0,
        launches=100,
        launch_overhead_pct=100 * 370 / 620,
        avg_launch_ns=4_800.0,
        syncs=0,
        sync_us=0.0,
        memcpy_us=0.0,
        memset_us=0.0,
    )
    kernel = KernelEvidence(name="k", owner="user", launches=100, time_us=250.0, share=1.0)
    return Evidence(
        device=DEVICE,
        arch="sm_90",
        level="timeline",
        kernels=(kernel,),
        timeline=timeline,
        roofline=analyse_reference(Work(vector_flops=1e6, bytes=8e6), find_gpu(DEVICE)),
    )


def _divergent() -> Evidence:
    # One lane of a warp works at a time.
    changes = {
        **_NOT_BUSY,
        "gpu__time_duration.sum": 1_500_000.0,
        "smsp__thread_inst_executed_per_inst_executed.ratio": 1.9,
        "smsp__sass_average_branch_targets_threads_uniform.pct": 40.0,
        "smsp__issue_active.avg.per_cycle_active": 0.45,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 16_777_216.0,
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 16_777_216.0,
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 4.0,
    }
    return one_kernel(healthy_metrics(changes, stalls={"branch_resolving": 20.0, "wait": 42.0}))
