"""Nsight Compute's CSV pages: recorded ones, cut ones, foreign ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.tools.collect.figures import in_base_units, number
from kopt.tools.collect.ncu_raw import parse_raw
from kopt.tools.collect.ncu_rules import parse_rules
from kopt.tools.collect.unreadable import UnreadableProfile
from kopt.tools.counters import stall_counter

RECORDED = Path(__file__).parents[2] / "golden" / "findings" / "recorded"
RAW = (RECORDED / "exp.ncu_raw.csv").read_text()
DETAILS = (RECORDED / "exp.ncu_details.csv").read_text()

HEAD = '"ID","Kernel Name","Block Size","Grid Size","CC"'
TIME = "gpu__time_duration.sum"
GRID = "launch__grid_size"


def page(*rows: str, columns: str = f'"{TIME}","{GRID}"', units: str = '"ns",""') -> str:
    return "\n".join([f"{HEAD},{columns}", f'"","","","","",{units}', *rows]) + "\n"


def row(ordinal: int = 0, *cells: str, kernel: str = "k", grid: str = "(8, 1, 1)") -> str:
    values = [str(ordinal), kernel, "(128, 1, 1)", grid, "9.0", *(cells or ("1,500", "8"))]
    return ",".join(f'"{value}"' for value in values)


def test_the_recorded_page_reads_as_it_was_counted() -> None:
    report = parse_raw(RAW)
    assert (report.device, report.arch, len(report.launches)) == ("NVIDIA H200", "sm_90", 2)
    metrics = report.launches[0].metrics
    assert metrics[TIME] == 123_968
    assert metrics["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"] == 85.89
    assert metrics["dram__bytes_read.sum"] == 268_452_352
    sectors = metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
    requests = metrics["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]
    assert (sectors, requests) == (8_388_608, 524_288)
    assert metrics["launch__registers_per_thread"] == 17
    assert report.remarks == ()


def test_what_a_full_set_brings_in_another_form_is_worked_out() -> None:
    metrics = parse_raw(RAW).launches[0].metrics
    # 83.6 warps of 99.7 that wait for each issue: 83.8 %; all reasons make 100.
    assert metrics[stall_counter("long_scoreboard")] == pytest.approx(83.8, abs=0.05)
    shares = [value for name, value in metrics.items() if "issue_stalled" in name]
    assert len(shares) == 19
    assert sum(shares) == pytest.approx(100.0)
    # 17,039,360 instructions of 32 threads.
    assert metrics["smsp__thread_inst_executed.sum"] == 545_259_520


def test_a_counter_that_nothing_brings_is_absent() -> None:
    assert "sm__inst_executed_pipe_tensor_op_gmma.sum" not in parse_raw(RAW).launches[0].metrics


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("65,536", 65_536.0),
        ("38,027.86", 38_027.86),
        ("1,234,567", 1_234_567.0),
        ("0", 0.0),
        ("-3.5", -3.5),
        ("1.5e+09", 1.5e9),
        (" 7 ", 7.0),
        ("", None),
        ("n/a", None),
        ("N/A", None),
        ("nan", None),
        ("no data", None),
        ("inf", None),
        ("1.234,56", None),
        ("12,34", None),
        ("1,2345", None),
        ("(128, 1, 1)", None),
        ("CachePreferNone", None),
        ("1; 2; 3", None),
        ("--5", None),
    ],
)
def test_cells_are_numbers_or_unknown(cell, value) -> None:
    assert number(cell) == value


@pytest.mark.parametrize(
    ("value", "unit", "base"),
    [
        (124.0, "us", 124_000.0),
        (1.5, "ms", 1.5e6),
        (2.0, "msecond", 2e6),
        (2.0, "s", 2e9),
        (268.45, "Mbyte", 268.45e6),
        (1.0, "Kbyte/block", 1e3),
        (4.13, "Tbyte/s", 4.13e12),
        (4.13, "Gbyte/second", 4.13e9),
        (1.98, "Ghz", 1.98e9),
        (85.0, "%", 85.0),
        (17.0, "register/thread", 17.0),
        (32.0, "byte/sector", 32.0),
        (3.0, "", 3.0),
        (3.0, "furlong", 3.0),
    ],
)
def test_units_become_base_units(value, unit, base) -> None:
    assert in_base_units(value, unit) == pytest.approx(base)


def test_units_of_a_page_are_applied() -> None:
    report = parse_raw(page(row(0, "1.5", "8"), units='"us",""'))
    assert report.launches[0].metrics == {TIME: 1500.0, GRID: 8.0}


def test_unknown_values_are_none_and_never_zero() -> None:
    metrics = parse_raw(page(row(0, "n/a", ""))).launches[0].metrics
    assert metrics == {TIME: None, GRID: None}


def test_a_quotient_of_nothing_is_unknown() -> None:
    name = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
    text = page(row(0, "0", "0"), row(1, "0", "4"), columns=f'"{TIME}","{name}"')
    assert [each.metrics for each in parse_raw(text).launches] == [
        {TIME: 0.0, name: None},
        {TIME: 0.0, name: 4.0},
    ]


def test_names_of_other_chips_are_known() -> None:
    columns = '"dram__bytes_op_read.sum","dram__bytes_op_write.sum"'
    metrics = parse_raw(page(row(0, "10", "20"), columns=columns)).launches[0].metrics
    assert metrics == {"dram__bytes_read.sum": 10.0, "dram__bytes_write.sum": 20.0}


def test_what_the_program_prints_between_rows_is_passed_over() -> None:
    text = page(row(0), "step 1, loss 0.5", row(1), "==PROF== Disconnected from process 7", row(2))
    report = parse_raw(text)
    assert [launch.ordinal for launch in report.launches] == [0, 1, 2]
    assert report.remarks == ("a row of 2 cells where 7 are columns was dropped",)


def test_a_page_that_is_cut_off_keeps_its_whole_rows() -> None:
    report = parse_raw(page(row(0), row(1), row(2))[:-8])
    assert [launch.ordinal for launch in report.launches] == [0, 1]
    assert len(report.remarks) == 1


def test_names_with_quotes_commas_and_letters_of_other_alphabets_are_whole() -> None:
    name = 'void ns::f<int, ""é"">(float *, int)'
    (launch,) = parse_raw(page(row(0, kernel=name))).launches
    assert launch.kernel == 'void ns::f<int, "é">(float *, int)'


def test_a_page_without_units_is_in_base_units() -> None:
    text = f'{HEAD},"{TIME}"\n{row(0, "1,500")}\n'
    assert parse_raw(text).launches[0].metrics == {TIME: 1500.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user\n", "no permission"),
        ("==ERROR== Failed to find metric regex:^a__b\\.(sum|min)$\n", "not have: a__b"),
        ("==ERROR== Failed to find metric a__b.sum\n", "not have: a__b.sum"),
        ("==WARNING== No kernels were profiled.\n", "no kernel ran"),
        ("==ERROR== LibraryNotLoaded\n", "cannot start in this sandbox"),
        ("==ERROR== Something new\n", "Something new"),
        ('{"traceEvents": []}', "expected a table"),
        (page(), "no launches"),
        ('"ID","Name"\n"0","k"\n', "expected a column 'Kernel Name'"),
        ("\x00\x01binary" * 9, "expected a table"),
    ],
)
def test_output_without_a_table_says_what_happened_in_one_line(text, words) -> None:
    with pytest.raises(UnreadableProfile, match=words) as caught:
        parse_raw(text)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 400


def test_more_launches_than_are_read_are_told() -> None:
    report = parse_raw(page(*(row(ordinal) for ordinal in range(4100))))
    assert len(report.launches) == 4096
    assert report.remarks == ("only the first 4096 of 4100 launches were read",)


def test_the_recorded_rules_with_their_estimates() -> None:
    (launch,) = parse_rules(DETAILS).launches
    found = [
        (rule.name, rule.speedup_scope, rule.speedup_pct)
        for rule in launch.rules
        if rule.kind == "OPT"
    ]
    assert found[:3] == [
        ("HighPipeUtilization", "local", 92.58),
        ("MemoryL2Compression", "global", 30.5),
        ("IssueSlotUtilization", "local", 14.19),
    ]
    remark = launch.rules[0]
    assert (remark.name, remark.kind, remark.speedup_pct) == ("SOLBottleneck", "INF", None)


def test_a_raw_page_is_no_details_page() -> None:
    with pytest.raises(UnreadableProfile, match="no details page: no column 'Section Name'"):
        parse_rules(RAW)
