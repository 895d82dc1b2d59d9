"""Global and shared memory: sectors and their bytes, widths, bank conflicts."""

from __future__ import annotations

import pytest

LD_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
ST_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"
LD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
ST_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
LD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
LD_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
LD_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
ST_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"


@pytest.mark.parametrize(
    ("useful", "severity"),
    [
        (24.0, None),
        (23.9, "medium"),
        (16.0, "medium"),
        (15.9, "high"),
        (8.0, "high"),
        (7.9, "critical"),
    ],
)
def test_coalescing_is_judged_by_the_bytes_asked_for_in_a_sector(kernel, useful, severity) -> None:
    found = kernel("memory_coalescing", {LD_BYTES: useful})
    assert (found and found.severity) == severity


def test_sixteen_sectors_a_request_are_a_perfect_wide_load(kernel) -> None:
    # The healthy kernel: 8,388,608 sectors in 524,288 requests, 32 bytes of each asked for.
    assert kernel("memory_coalescing") is None


def test_few_sectors_are_not_worth_a_word(kernel) -> None:
    scattered = {LD_BYTES: 4.0, ST_BYTES: 32.0}
    assert kernel("memory_coalescing", {**scattered, LD_SECTORS: 99_999.0}) is None
    assert kernel("memory_coalescing", {**scattered, LD_SECTORS: 100_000.0}).severity == "critical"


def test_the_worse_of_loads_and_stores_is_told(kernel) -> None:
    found = kernel("memory_coalescing", {LD_BYTES: 20.0, ST_BYTES: 4.0})
    assert found.severity == "critical"
    assert found.observed["bytes_per_sector_st"] == 4.0
    assert "stores" in found.summary


def test_what_is_unknown_of_loads_does_not_hide_stores_nor_count_as_zero(kernel) -> None:
    assert kernel("memory_coalescing", {LD_BYTES: None}) == (LD_BYTES,)
    assert kernel("memory_coalescing", {LD_SECTORS: None, LD_BYTES: 4.0}) == (LD_SECTORS,)
    assert kernel("memory_coalescing", {LD_BYTES: None, ST_BYTES: 4.0}).severity == "critical"
    # A kernel without loads has no bytes for each sector.
    assert kernel("memory_coalescing", {LD_BYTES: None, LD_SECTORS: 0.0}) is None


def test_narrow_loads_are_told_up_to_four_and_a_half_sectors_a_request(kernel) -> None:
    # 8,388,608 sectors ÷ 4.5 = 1,864,135.1 requests.
    assert kernel("vectorization", {LD_REQUESTS: 1_864_135.0}) is None
    assert kernel("vectorization", {LD_REQUESTS: 1_864_136.0}).severity == "medium"


def test_narrow_loads_at_the_memory_roof_are_fast_enough(kernel) -> None:
    narrow = {LD_REQUESTS: 2_097_152.0}
    assert kernel("vectorization", {**narrow, DRAM: 80.0}) is None
    assert kernel("vectorization", {**narrow, DRAM: 79.9}) is not None


def test_a_full_queue_of_narrow_loads_is_severe(kernel) -> None:
    narrow = {LD_REQUESTS: 2_097_152.0}
    assert kernel("vectorization", narrow, stalls={"lg_throttle": 15.0}).severity == "medium"
    assert kernel("vectorization", narrow, stalls={"lg_throttle": 15.1}).severity == "high"


def test_uncoalesced_loads_are_not_told_to_be_wider(kernel) -> None:
    assert kernel("vectorization", {LD_REQUESTS: 2_097_152.0, LD_BYTES: 23.9}) is None


def test_a_binary_that_loads_wide_is_not_told_to(kernel) -> None:
    narrow = {LD_REQUESTS: 2_097_152.0}
    assert kernel("vectorization", narrow, sass={"LDG": 4, "LDG.128": 2}) is None
    assert kernel("vectorization", narrow, sass={"LDG.E.64": 3, "LDG.E": 1}) is None
    assert kernel("vectorization", narrow, sass={"LDG": 4, "LDG.128": 1}) is not None


@pytest.mark.parametrize(
    ("conflicts", "severity"),
    [(1.0e6, None), (1.01e6, "medium"), (3.0e6, "medium"), (3.01e6, "high")],
)
def test_conflicts_are_a_share_of_the_wavefronts_of_loads_and_stores(
    kernel, conflicts, severity
) -> None:
    changes = {LD_CONFLICTS: conflicts, LD_WAVEFRONTS: 6e6, ST_WAVEFRONTS: 4e6}
    found = kernel("shared_bank_conflict", changes, stalls={"short_scoreboard": 11.0})
    assert (found and found.severity) == severity


def test_conflicts_that_nobody_waits_for_are_a_matter_of_energy(kernel) -> None:
    changes = {LD_CONFLICTS: 5e6, LD_WAVEFRONTS: 1e7}
    stalls = {"short_scoreboard": 6.0, "mio_throttle": 4.0}
    assert kernel("shared_bank_conflict", changes, stalls=stalls) is None
    assert kernel("energy_bank_conflict", changes, stalls=stalls).severity == "low"
    waiting = {"short_scoreboard": 10.0, "mio_throttle": 4.0}
    assert kernel("shared_bank_conflict", changes, stalls=waiting).severity == "high"
    assert kernel("energy_bank_conflict", changes, stalls=waiting) is None


def test_a_kernel_without_shared_memory_has_no_conflicts(kernel) -> None:
    assert kernel("shared_bank_conflict", stalls={"short_scoreboard": 50.0}) is None
    assert kernel("shared_bank_conflict", {LD_WAVEFRONTS: None}) == (LD_WAVEFRONTS,)


CP_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ldgsts.ratio"
CP_SECTORS = "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum"
COPIES = {"LDGSTS": 24, "LDS": 17, "HMMA": 32}
MIXED = {**COPIES, "LDG": 4}


def test_sectors_that_nobody_asked_a_byte_of_are_not_counted_rather_than_wasted(kernel) -> None:
    # 0 of each sector cannot be: whoever touches a sector asks for a byte of it.
    assert kernel("memory_coalescing", {LD_BYTES: 0.0}) == (LD_BYTES,)
    assert kernel("energy_uncoalesced", {LD_BYTES: 0.0}) == (LD_BYTES,)
    assert kernel("vectorization", {LD_BYTES: 0.0}) == (LD_BYTES,)


def test_asynchronous_copies_are_judged_by_their_own_counter(kernel) -> None:
    counted = {LD_BYTES: 0.0, CP_SECTORS: 8_388_608.0}
    assert kernel("memory_coalescing", {**counted, CP_BYTES: 32.0}, sass=COPIES) is None
    found = kernel("memory_coalescing", {**counted, CP_BYTES: 4.0}, sass=COPIES)
    assert found.severity == "critical"
    assert "copies to shared memory" in found.summary
    assert found.observed["sectors_ldgsts"] == 8_388_608.0


def test_copies_without_their_counter_are_judged_by_what_a_request_can_ask_for(kernel) -> None:
    # 32 lanes ask for 16 bytes each at most: 512 bytes in 32 sectors are 16 of each at best.
    uncounted = {LD_BYTES: 0.0, CP_BYTES: None, CP_SECTORS: None}
    scattered = {**uncounted, LD_SECTORS: 32e6, LD_REQUESTS: 1e6}
    found = kernel("memory_coalescing", scattered, sass=COPIES)
    assert found.severity == "medium"
    assert found.observed["bytes_per_sector_ldgsts"] == 16.0
    perfect = {**uncounted, LD_SECTORS: 16e6, LD_REQUESTS: 1e6}
    assert kernel("memory_coalescing", perfect, sass=COPIES) == (CP_BYTES,)


def test_a_few_scattered_loads_beside_many_copies_are_not_worth_a_word(kernel) -> None:
    # Of 10 million sectors 9.95 million are copies': 50,000 sectors of loads are left.
    few = {LD_SECTORS: 10e6, CP_SECTORS: 9.95e6, CP_BYTES: 32.0, LD_BYTES: 4.0}
    assert kernel("memory_coalescing", few, sass=MIXED) is None
    many = {**few, CP_SECTORS: 5e6}
    assert kernel("memory_coalescing", many, sass=MIXED).observed["sectors_ld"] == 5e6


def test_loads_and_copies_that_cannot_be_told_apart_keep_the_tool_silent(kernel) -> None:
    unknown = {LD_BYTES: 4.0, CP_SECTORS: None, CP_BYTES: None}
    assert kernel("memory_coalescing", unknown, sass=MIXED) == (LD_SECTORS,)
    # Without a disassembly nothing says that there are copies.
    assert kernel("memory_coalescing", unknown).severity == "critical"
