"""Occupancy, waves, idle lanes, registers and spills."""

from __future__ import annotations

import pytest

ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
POSSIBLE = "sm__maximum_warps_per_active_cycle_pct"
ISSUE = "smsp__issue_active.avg.per_cycle_active"
ELIGIBLE = "smsp__warps_eligible.avg.per_cycle_active"
GRID = "launch__grid_size"
WAVES = "launch__waves_per_multiprocessor"
BY_REGISTERS = "launch__occupancy_limit_registers"
BY_SHARED = "launch__occupancy_limit_shared_mem"
REGISTERS = "launch__registers_per_thread"
GMMA = "sm__inst_executed_pipe_tensor_op_gmma.sum"
LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
SPILLED = "sass__inst_executed_register_spilling"
LOCAL_LD = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"
LOCAL_ST = "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"
SPILLING = {"STL": 10, "LDL": 20, "EXIT": 1}
AWAKE = {ISSUE: 0.5, ELIGIBLE: 2.0}


@pytest.mark.parametrize(
    ("achieved", "severity"),
    [(25.0, None), (24.9, "high"), (10.0, "high"), (9.9, "critical")],
)
def test_occupancy_speaks_below_25_per_cent(kernel, achieved, severity) -> None:
    found = kernel("occupancy_limiter", {ACHIEVED: achieved, POSSIBLE: 30.0, BY_SHARED: 2.0})
    assert (found and found.severity) == severity
    if found:
        assert "shared memory" in found.summary


def test_low_occupancy_with_busy_schedulers_is_no_fault(kernel) -> None:
    low = {ACHIEVED: 12.0, POSSIBLE: 12.5}
    assert kernel("occupancy_limiter", {**low, ISSUE: 0.6}) is None
    assert kernel("occupancy_limiter", {**low, ISSUE: 0.59}) is not None


def test_low_occupancy_is_right_for_warpgroup_products(kernel) -> None:
    assert kernel("occupancy_limiter", {ACHIEVED: 12.0, GMMA: 1e6}) is None


def test_a_gap_to_what_is_possible_is_told_above_20_points(kernel) -> None:
    assert kernel("occupancy_limiter", {ACHIEVED: 80.0, POSSIBLE: 100.0}) is None
    assert kernel("occupancy_limiter", {ACHIEVED: 79.9, POSSIBLE: 100.0}).severity == "medium"


def test_a_grid_below_the_number_of_multiprocessors_leaves_some_idle(kernel) -> None:
    # 132 on an H200. 13 of them are 9.8 %, 33 are 25 %.
    assert kernel("occupancy_limiter", {GRID: 132.0}) is None
    assert kernel("occupancy_limiter", {GRID: 131.0}).severity == "medium"
    assert kernel("occupancy_limiter", {GRID: 32.0}).severity == "high"
    assert kernel("occupancy_limiter", {GRID: 13.0}).severity == "critical"


def test_the_profiler_knows_the_multiprocessors_better_than_the_table(kernel) -> None:
    assert kernel("occupancy_limiter", {GRID: 100.0, "launch__sm_count": 100.0}) is None


def test_unknown_occupancy_is_not_low_occupancy(kernel) -> None:
    assert kernel("occupancy_limiter", {ACHIEVED: None}) == (ACHIEVED,)
    assert kernel("occupancy_limiter", {ACHIEVED: 12.0, BY_SHARED: None}) == (BY_SHARED,)


@pytest.mark.parametrize(
    ("waves", "fires"),
    [(1.0, False), (1.5, True), (1.7, False), (2.4, True), (2.6, False), (4.1, True), (5.1, False)],
)
def test_waves_are_told_where_the_last_costs_more_than_a_fifth(kernel, waves, fires) -> None:
    # ceil(w)/w - 1: 0, 0.33, 0.18, 0.25, 0.15, 0.22; from five waves on it is not asked.
    assert bool(kernel("wave_quantization", {WAVES: waves})) is fires


def test_less_than_one_wave_is_a_matter_of_the_grid(kernel) -> None:
    assert kernel("wave_quantization", {WAVES: 0.3}) is None


@pytest.mark.parametrize(
    ("threads", "severity"),
    [(24.0, None), (23.9, "medium"), (15.9, "high"), (7.9, "critical"), (0.0, None)],
)
def test_idle_lanes_speak_below_24_of_32(kernel, threads, severity) -> None:
    found = kernel("divergence", {LANES: threads})
    assert (found and found.severity) == severity


@pytest.mark.parametrize(
    ("registers", "severity"), [(95.0, None), (96.0, "medium"), (127.0, "medium"), (128.0, "high")]
)
def test_registers_speak_from_96_on_where_they_bind(kernel, registers, severity) -> None:
    found = kernel("high_register_usage", {REGISTERS: registers, BY_REGISTERS: 4.0})
    assert (found and found.severity) == severity


def test_registers_that_do_not_bind_or_hold_accumulators_are_right(kernel) -> None:
    assert kernel("high_register_usage", {REGISTERS: 128.0, BY_SHARED: 2.0}) is None
    bound = {REGISTERS: 168.0, BY_REGISTERS: 1.0}
    assert kernel("high_register_usage", {**bound, GMMA: 1e5}) is None
    assert kernel("high_register_usage", bound, sass={"HGMMA": 64}) is None
    # Equal limits bind both.
    assert kernel("high_register_usage", {REGISTERS: 128.0, BY_REGISTERS: 4.0, BY_SHARED: 4.0})


def spill(kernel, changes=None, *, stalls=None, spill_bytes=256, sass=SPILLING):
    changed = {SPILLED: None, **AWAKE, **(changes or {})}
    return kernel(
        "register_spill", changed, stalls=stalls or {}, sass=sass, spill_bytes=spill_bytes
    )


def test_case_a_spills_add_latency(kernel) -> None:
    # Throughputs are 40 % each.
    assert spill(kernel, stalls={"long_scoreboard": 15.0}) is None
    assert spill(kernel, stalls={"long_scoreboard": 15.1}).severity == "high"
    assert spill(kernel, {MEMORY: 50.0}, stalls={"long_scoreboard": 50.0}) is None


def test_case_b_spills_take_bandwidth(kernel) -> None:
    # Global sectors: 16,777,216. 30 % local of all: 7,190,235.4.
    busy = {MEMORY: 60.1, LOCAL_ST: 0.0}
    assert spill(kernel, {**busy, LOCAL_LD: 7_190_235.0}) is None
    assert spill(kernel, {**busy, LOCAL_LD: 7_190_236.0}).severity == "critical"
    assert spill(kernel, {**busy, MEMORY: 60.0, LOCAL_LD: 9e6}) is None


def test_case_c_registers_bind_and_the_schedulers_starve(kernel) -> None:
    bind = {BY_REGISTERS: 2.0}
    assert spill(kernel, bind) is None
    assert spill(kernel, {**bind, ISSUE: 0.29}).severity == "medium"
    assert spill(kernel, {**bind, ELIGIBLE: 0.59}).severity == "medium"
    assert spill(kernel, {ISSUE: 0.29}) is None


def test_the_worst_case_is_told(kernel) -> None:
    changes = {MEMORY: 70.0, LOCAL_LD: 2e7, BY_REGISTERS: 2.0, ISSUE: 0.1}
    assert spill(kernel, changes, stalls={"long_scoreboard": 60.0}).severity == "critical"


def test_a_local_array_is_no_spill(kernel) -> None:
    stalls = {"long_scoreboard": 50.0}
    assert spill(kernel, stalls=stalls, spill_bytes=0) is None
    assert spill(kernel, {SPILLED: 0.0}, stalls=stalls, spill_bytes=None) is None
    # Nobody counted spills: STL and LDL are taken for them, as the paper does.
    assert spill(kernel, stalls=stalls, spill_bytes=None).severity == "high"
    assert spill(kernel, stalls=stalls, spill_bytes=None, sass={"FFMA": 1}) is None


def test_a_spill_whose_harm_is_unknown_is_not_told(kernel) -> None:
    unknown = {MEMORY: None}
    assert spill(kernel, unknown, stalls={"long_scoreboard": 50.0}) == (MEMORY,)
    assert spill(kernel, {**unknown, BY_REGISTERS: 2.0, ISSUE: 0.1}).severity == "medium"
    assert spill(kernel, spill_bytes=None, sass={}) == ("sass:STL",)
