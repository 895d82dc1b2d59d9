"""Counters to ask for; launches of several processes; names that profilers spell apart."""

from __future__ import annotations

import pytest

from kopt.evidence import Timeline
from kopt.tools.collect.assemble import Collected, assemble
from kopt.tools.collect.kineto import TracedKernel, TraceReport
from kopt.tools.collect.ncu_names import known_counters, parse_metric_names
from kopt.tools.collect.ncu_raw import NcuLaunch, NcuReport, of_process, parse_raw
from kopt.tools.collect.unreadable import UnreadableProfile

LISTING = """\
Device NVIDIA H200 (GH100)
---------------------- --------------- ----------------- -------------------------
Metric Name            Metric Type     Metric Unit       Metric Description
---------------------- --------------- ----------------- -------------------------
dram__bytes_read       Counter         byte              # of bytes read from DRAM
smsp__inst_executed    Counter         inst              # of warp instructions
"""


def test_names_are_the_first_words_of_a_listing() -> None:
    assert parse_metric_names(LISTING) == {"dram__bytes_read", "smsp__inst_executed"}


def test_a_listing_without_names_says_what_it_is() -> None:
    with pytest.raises(UnreadableProfile, match="==ERROR=="):
        parse_metric_names("==ERROR== no GPU")


def test_counters_that_are_not_listed_are_asked_for_only_where_no_listing_has_them() -> None:
    wanted = (
        "dram__bytes_read.sum",
        "gone__cycles.avg",
        "launch__grid_size",
        "sm__maximum_warps_per_active_cycle_pct",
    )
    assert known_counters(wanted, parse_metric_names(LISTING)) == (
        "dram__bytes_read.sum",
        "launch__grid_size",
        "sm__maximum_warps_per_active_cycle_pct",
    )


def test_launches_are_told_by_their_process() -> None:
    page = (
        '"ID","Process ID","Kernel Name","Block Size","Grid Size","launch__grid_size"\n'
        '"","","","","",""\n'
        '"0","11","a","(1, 1, 1)","(1, 1, 1)","1"\n'
        '"1","12","b","(1, 1, 1)","(2, 1, 1)","2"\n'
    )
    report = parse_raw(page)
    own = of_process(report, 12)
    assert own is not None
    assert [(launch.kernel, launch.process) for launch in own.launches] == [("b", 12)]
    assert of_process(report, 13) is None


def launch(kernel) -> NcuLaunch:
    return NcuLaunch(ordinal=0, kernel=kernel, block="(1)", grid="(1)", metrics={})


def traced(name, *, launches, share) -> TracedKernel:
    return TracedKernel(
        name=name, owner="aten", launches=launches, time_us=100 * share, share=share, registers=40
    )


def test_instances_of_one_template_get_their_own_shares() -> None:
    first = "void at::native::apply<4, at::native::Add>(int, at::native::Add)"
    second = "void at::native::apply<4, at::native::Mul>(int, at::native::Mul)"
    collected = Collected(
        device="NVIDIA H200",
        arch="sm_90",
        ncu=NcuReport(launches=(launch(first.replace(", ", ",")),)),
        trace=TraceReport(
            timeline=Timeline(e2e_us=100.0),
            kernels=(traced(first, launches=3, share=0.7), traced(second, launches=1, share=0.3)),
            num_calls=1,
        ),
    )
    kernels = assemble(collected).evidence.kernels
    assert [(kernel.launches, kernel.share) for kernel in kernels] == [(3, 0.7), (1, 0.3)]


def test_a_kernel_that_only_the_timeline_has_keeps_its_registers() -> None:
    collected = Collected(
        device="NVIDIA H200",
        arch="sm_90",
        trace=TraceReport(
            timeline=Timeline(e2e_us=100.0),
            kernels=(traced("k", launches=1, share=1.0),),
            num_calls=1,
        ),
    )
    assert [kernel.registers for kernel in assemble(collected).evidence.kernels] == [40]


def test_kernels_of_one_name_are_told_apart_by_their_grid_and_keep_their_own_counters() -> None:
    page = (
        '"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum"\n'
        '"","","","","ns"\n'
        '"0","k","(128, 1, 1)","(8, 1, 1)","3,000"\n'
        '"1","k","(128, 1, 1)","(64, 1, 1)","1,000"\n'
        '"2","k","(128, 1, 1)","(8, 1, 1)","5,000"\n'
    )
    trace = TraceReport(
        timeline=Timeline(e2e_us=100.0),
        kernels=(traced("k", launches=3, share=1.0),),
        num_calls=1,
    )
    collected = Collected(device="NVIDIA H200", arch="sm_90", ncu=parse_raw(page), trace=trace)
    kernels = assemble(collected).evidence.kernels
    # Two launches of 3 and 5 us on one grid, one of 1 us on the other; none is told twice.
    assert [(kernel.launches, kernel.time_us) for kernel in kernels] == [(2, 8.0), (1, 1.0)]
    assert [round(kernel.share or 0.0, 3) for kernel in kernels] == [0.889, 0.111]
