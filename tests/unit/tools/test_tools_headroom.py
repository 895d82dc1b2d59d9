"""Speed of light, wasted traffic, energy notes, and the two proxies of energy."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kopt.evidence import Evidence, KernelEvidence, Roofline, Timeline
from kopt.testing.planted_evidence import healthy_metrics, one_kernel
from kopt.tools import ToolRegistry, diagnose
from kopt.tools.energy_proxy import call_energy, energy_terms
from kopt.tools.energy_reward import DOMINATED, energy_aware_reward

DRAM_READ = "dram__bytes_read.sum"
DRAM_WRITE = "dram__bytes_write.sum"
LD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
LD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
LD_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
LOCAL_LD = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"
LOCAL_ST = "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
THREADS = "smsp__thread_inst_executed.sum"


def call(*, time_us: float | None = None, e2e_us: float | None = None, **roofline) -> Evidence:
    return Evidence(
        device="NVIDIA H200",
        arch="sm_90",
        level="timeline",
        time_us=time_us,
        timeline=None if e2e_us is None else Timeline(e2e_us=e2e_us),
        roofline=Roofline(**roofline),
    )


def remarks(evidence: Evidence):
    diagnosis = diagnose(evidence, tools=[ToolRegistry.get("sol_reached")])
    if diagnosis.remarks:
        return diagnosis.remarks[0].observed["time_us"]
    return diagnosis.silent[0].missing if diagnosis.silent else None


def test_the_speed_of_light_is_reached_within_15_per_cent() -> None:
    assert remarks(call(sol_us=100.0, time_us=115.0)) == 115.0
    assert remarks(call(sol_us=100.0, time_us=115.1)) is None


def test_what_such_a_device_reaches_counts_where_it_is_known() -> None:
    assert remarks(call(sol_us=100.0, reachable_us=115.0, time_us=132.0)) == 132.0
    assert remarks(call(sol_us=100.0, reachable_us=115.0, time_us=132.3)) is None


def test_a_time_below_the_speed_of_light_says_nothing() -> None:
    assert remarks(call(sol_us=100.0, time_us=99.0)) is None


def test_the_profiled_call_stands_for_the_time_and_never_falsely() -> None:
    assert remarks(call(sol_us=100.0, e2e_us=110.0)) == 110.0
    assert remarks(call(sol_us=100.0, e2e_us=110.0, time_us=150.0)) is None
    assert remarks(call(sol_us=100.0)) == ("evidence.time_us",)


def test_at_the_speed_of_light_nothing_else_is_said() -> None:
    evidence = one_kernel(healthy_metrics({LD_BYTES: 4.0}))
    assert [each.tool for each in diagnose(evidence).findings] == ["memory_coalescing"]
    at_sol = replace(evidence, time_us=115.0)
    assert diagnose(at_sol).findings == ()
    assert [each.tool for each in diagnose(at_sol).remarks] == ["sol_reached"]


def waste(read: float | None, *, compulsory: float = 100e6):
    kernel = KernelEvidence(
        name="k", owner="user", launches=2, metrics={DRAM_READ: read, DRAM_WRITE: 25e6}
    )
    evidence = replace(call(bytes=compulsory), kernels=(kernel,))
    diagnosis = diagnose(evidence, tools=[ToolRegistry.get("algorithmic_waste")])
    if diagnosis.findings:
        return diagnosis.findings[0].severity
    return diagnosis.silent[0].missing if diagnosis.silent else None


def test_waste_is_traffic_beyond_inputs_and_outputs() -> None:
    # Two launches move 2 · (read + 25) MB against 100 MB.
    assert waste(50e6) is None
    assert waste(50.1e6) == "medium"
    assert waste(125e6) == "medium"
    assert waste(125.1e6) == "high"


def test_a_few_megabytes_are_no_waste() -> None:
    assert waste(0.0, compulsory=47e6) is None
    assert waste(0.0, compulsory=20e6) == "medium"


def test_unknown_traffic_is_not_zero() -> None:
    assert waste(None) == (DRAM_READ,)


COUNTED = {
    DRAM_READ: 1000.0,
    DRAM_WRITE: 500.0,
    LD_SECTORS: 320.0,
    LD_REQUESTS: 10.0,
    LD_BYTES: 8.0,
    LOCAL_LD: 3.0,
    LOCAL_ST: 4.0,
    INSTRUCTIONS: 100.0,
    THREADS: 3200.0,
}


def test_the_paper_s_proxy_by_hand() -> None:
    # 20·1500 + 100·320·(32/4 - 1) + 80·7 + 3·100 = 30000 + 224000 + 560 + 300.
    assert energy_terms(COUNTED).paper_pj == 254_860.0
    # The same with instructions of threads: 3·3200 in place of 3·100.
    assert energy_terms(COUNTED, instructions="thread").paper_pj == 264_160.0


def test_the_corrected_proxy_charges_unused_bytes() -> None:
    # 30000 + 100·320·(1 - 8/32) + 560 + 300 = 30000 + 24000 + 860.
    assert energy_terms(COUNTED).corrected_pj == 54_860.0


def test_the_paper_charges_perfect_wide_loads_and_the_correction_does_not() -> None:
    wide = {**COUNTED, LD_SECTORS: 160.0, LD_BYTES: 32.0}
    assert energy_terms(wide).uncoalesced_pj == 100 * 160 * 3
    assert energy_terms(wide).unused_sectors_pj == 0.0


def test_a_proxy_with_an_unknown_term_is_unknown() -> None:
    assert energy_terms({**COUNTED, LOCAL_ST: None}).paper_pj is None
    assert energy_terms({**COUNTED, LD_BYTES: None}).corrected_pj is None
    assert energy_terms({**COUNTED, LD_BYTES: None}).paper_pj == 254_860.0
    assert energy_terms({}).paper_pj is None


def test_the_energy_of_a_call_is_that_of_its_launches() -> None:
    kernels = tuple(
        KernelEvidence(name=str(launches), owner="user", launches=launches, metrics=dict(COUNTED))
        for launches in (1, 2)
    )
    evidence = replace(call(), kernels=kernels)
    assert call_energy(evidence, millijoules=1.5).proxy_pj == 3 * 254_860.0
    assert call_energy(evidence, millijoules=1.5).millijoules == 1.5
    unknown = KernelEvidence(name="u", owner="aten", launches=1)
    assert call_energy(replace(evidence, kernels=(*kernels, unknown))).proxy_pj is None
    assert call_energy(call()).proxy_pj is None


def test_the_reward_is_equation_3() -> None:
    expected = math.log(2.0) + 0.01 * math.log(1.5)
    assert energy_aware_reward(2.0, energy_reduction=1.5) == pytest.approx(expected)
    assert energy_aware_reward(2.0, energy_reduction=None) == math.log(2.0)
    # With a weight of 0, the search that measures energy is the one that does not.
    assert energy_aware_reward(2.0, energy_reduction=7.0, epsilon=0.0) == math.log(2.0)


def test_with_its_bound_no_energy_outweighs_two_per_cent_of_speed() -> None:
    fast = energy_aware_reward(1.02, energy_reduction=0.01, log_bound=DOMINATED)
    frugal = energy_aware_reward(1.0, energy_reduction=100.0, log_bound=DOMINATED)
    assert fast > frugal
    # As published it does: 0.01 · ln(10) > ln(1.02).
    assert energy_aware_reward(1.0, energy_reduction=10.0) > energy_aware_reward(
        1.02, energy_reduction=1.0
    )


@pytest.mark.parametrize(
    ("speedup", "reduction", "epsilon"),
    [(0.0, 1.0, 0.01), (-1.0, 1.0, 0.01), (1.0, 0.0, 0.01), (1.0, math.nan, 0.01), (1.0, 1.0, -1)],
)
def test_a_reward_of_impossible_figures_is_refused(speedup, reduction, epsilon) -> None:
    with pytest.raises(ValueError, match="must be"):
        energy_aware_reward(speedup, energy_reduction=reduction, epsilon=epsilon)


def test_a_spill_is_a_matter_of_energy_only_where_it_costs_no_time(kernel) -> None:
    local = {LOCAL_LD: 1e6}
    assert kernel("energy_register_spill", local, stalls={"long_scoreboard": 14.9}) is not None
    assert kernel("energy_register_spill", local, stalls={"long_scoreboard": 15.0}) is None
    hurts = {
        **local,
        "launch__occupancy_limit_registers": 2.0,
        "smsp__issue_active.avg.per_cycle_active": 0.1,
    }
    sass = {"STL": 1, "LDL": 1}
    asked = {"stalls": {"long_scoreboard": 5.0}, "sass": sass, "spill_bytes": 64}
    assert kernel(
        "register_spill", {**hurts, "sass__inst_executed_register_spilling": None}, **asked
    )
    assert kernel("energy_register_spill", hurts, **asked) is None


def test_unused_bytes_are_a_matter_of_energy_where_loads_do_not_stall(kernel) -> None:
    scattered = {LD_BYTES: 23.9}
    stalls = {"long_scoreboard": 10.0, "lg_throttle": 4.9}
    assert kernel("energy_uncoalesced", scattered, stalls=stalls).severity == "low"
    assert kernel("energy_uncoalesced", {LD_BYTES: 24.0}, stalls=stalls) is None
    stalls = {"long_scoreboard": 10.0, "lg_throttle": 5.0}
    assert kernel("energy_uncoalesced", scattered, stalls=stalls) is None


def test_barriers_are_counted_among_the_instructions_of_the_binary(kernel) -> None:
    assert kernel("energy_redundant_barrier", sass={"BAR": 5, "FFMA": 995}) is None
    assert kernel("energy_redundant_barrier", sass={"BAR": 6, "BAR.SYNC": 6, "FFMA": 994})
    assert kernel("energy_redundant_barrier", sass={"BAR.SYNC.DEFER_BLOCKING": 6, "FFMA": 994})
    waited = {"stalls": {"barrier": 10.0}, "sass": {"BAR": 6, "FFMA": 994}}
    assert kernel("energy_redundant_barrier", **waited) is None


def test_instructions_hide_under_the_memory_roof(kernel) -> None:
    # 512,167,936 bytes are 64,020,992 elements of 8; 20 each are 1,280,419,840.
    bound = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 60.1}
    assert kernel("energy_instruction_bloat", {**bound, THREADS: 1_280_419_840.0}) is None
    assert kernel("energy_instruction_bloat", {**bound, THREADS: 1_280_419_841.0}) is not None
    assert kernel("energy_instruction_bloat", {THREADS: 9e9}) is None
