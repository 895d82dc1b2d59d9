"""Names of the counters that are collected, by group, and how profilers spell them elsewhere.

`launch__*`, `sass__*` and `sm__maximum_warps_per_active_cycle_pct` are valid though
`--query-metrics` does not list them; `derived__*` come with a section set only, and asked for by
name they end the run (Nsight Compute 2025.3 on an H200). The
19 stall percentages, the tensor instruction counts and the FADD/FMUL/FFMA counts come only by name,
with no section set. Source: profiling notes §A.2.
"""

from __future__ import annotations

STALL_REASONS: tuple[str, ...] = (
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "gmma",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
)
"""Why a warp did not issue."""


def stall_counter(reason: str) -> str:
    """Return the counter of a stall: per cent of the active warps that it holds."""
    return f"smsp__warp_issue_stalled_{reason}_per_warp_active.pct"


COUNTER_GROUPS: dict[str, tuple[str, ...]] = {
    "time and speed of light": (
        "gpu__time_duration.sum",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpc__cycles_elapsed.max",
        "sm__cycles_active.avg",
    ),
    "issue": (
        "smsp__issue_active.avg.per_cycle_active",
        "smsp__warps_eligible.avg.per_cycle_active",
        "smsp__warps_active.avg.per_cycle_active",
        "smsp__average_warp_latency_per_inst_issued.ratio",
        "smsp__inst_executed.sum",
        "smsp__thread_inst_executed.sum",
    ),
    "stalls": tuple(stall_counter(reason) for reason in STALL_REASONS),
    "occupancy": (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "sm__maximum_warps_per_active_cycle_pct",
        "launch__occupancy_limit_registers",
        "launch__occupancy_limit_shared_mem",
        "launch__occupancy_limit_warps",
        "launch__occupancy_limit_blocks",
        "launch__occupancy_limit_barriers",
        "launch__registers_per_thread",
        "launch__shared_mem_per_block_static",
        "launch__shared_mem_per_block_dynamic",
        "launch__shared_mem_per_block_allocated",
        "launch__waves_per_multiprocessor",
        "launch__grid_size",
        "launch__block_size",
        "launch__cluster_size",
    ),
    "arithmetic": (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "sm__inst_executed_pipe_tensor_op_gmma.sum",
        "sm__inst_executed_pipe_tensor_op_hmma.sum",
        "sm__inst_executed_pipe_tensor_op_imma.sum",
        "sm__inst_executed_pipe_tensor_op_dmma.sum",
        "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
        "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    ),
    "global memory": (
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ldgsts.ratio",
        "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
        "l1tex__t_sector_hit_rate.pct",
        "lts__t_sector_hit_rate.pct",
        "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
    ),
    "shared memory": (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ),
    "local memory": (
        "smsp__sass_inst_executed_op_local_ld.sum",
        "smsp__sass_inst_executed_op_local_st.sum",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
        "sass__inst_executed_register_spilling",
    ),
    "divergence": (
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        "smsp__sass_average_branch_targets_threads_uniform.pct",
    ),
}
"""Group to its counters: what `--metrics` asks for."""
CORE_COUNTERS: tuple[str, ...] = tuple(name for names in COUNTER_GROUPS.values() for name in names)
DEVICE_COUNTERS: tuple[str, ...] = (
    "launch__sm_count",
    "device__attribute_multiprocessor_count",
    "derived__local_spilling_requests",
)
"""Kept beside them where a section set brings them."""
QUOTIENTS = "smsp__sass_average_data_bytes_per_"
"""Counters of bytes asked for in each sector or wavefront: 0 where nothing was divided. Loads that
copy to shared memory on their own (LDGSTS, cp.async) touch sectors and are not in the quotient of
plain loads, which then reads 0 (an H200, Nsight Compute 2025.3)."""
ALIASES: dict[str, str] = {
    "dram__bytes_op_read.sum": "dram__bytes_read.sum",
    "dram__bytes_op_write.sum": "dram__bytes_write.sum",
}
"""Names on other chips (GB20x) to those used here."""


def is_counted(name: str, value: float) -> bool:
    """Return whether a counter's value says anything: a quotient of nothing reads 0 and does not.

    Args:
        name: of the counter.
        value: as ncu gives it.
    """
    return value > 0 or not name.startswith(QUOTIENTS)
