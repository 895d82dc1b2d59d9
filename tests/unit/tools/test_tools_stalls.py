"""Warp stalls and barriers: edges of the trigger, severities, what is missing, near a roof."""

from __future__ import annotations

import pytest

from kopt.tools.counters import stall_counter

ISSUE = "smsp__issue_active.avg.per_cycle_active"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"


@pytest.mark.parametrize(
    ("pct", "severity"), [(40.0, None), (40.1, "high"), (59.9, "high"), (60.0, "critical")]
)
def test_the_dominant_stall_speaks_above_40_and_is_critical_from_60(kernel, pct, severity) -> None:
    found = kernel("warp_stall", stalls={"long_scoreboard": pct, "barrier": 10.0})
    assert (found and found.severity) == severity


def test_busy_schedulers_have_no_stall_worth_a_word(kernel) -> None:
    stalls = {"long_scoreboard": 70.0}
    assert kernel("warp_stall", {ISSUE: 0.8}, stalls=stalls) is None
    assert kernel("warp_stall", {ISSUE: 0.79}, stalls=stalls).severity == "critical"


def test_a_kernel_at_the_memory_roof_waits_for_memory_and_is_healthy(kernel) -> None:
    stalls = {"long_scoreboard": 84.0}
    assert kernel("warp_stall", {DRAM: 75.0}, stalls=stalls) is None
    # From 60 % on at most 1.5 times the speed is left.
    assert kernel("warp_stall", {DRAM: 74.9}, stalls=stalls).severity == "medium"
    assert kernel("warp_stall", {DRAM: 60.0}, stalls=stalls).severity == "medium"
    assert kernel("warp_stall", {DRAM: 59.9}, stalls=stalls).severity == "critical"


def test_signs_of_work_are_no_stall(kernel) -> None:
    assert kernel("warp_stall", stalls={"selected": 50.0, "wait": 45.0}) is None


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("long_scoreboard", "bytes"),
        ("lg_throttle", "16 bytes"),
        ("short_scoreboard", "bank conflicts"),
        ("math_pipe_throttle", "tensor cores"),
        ("gmma", "pipeline"),
        ("branch_resolving", "predication"),
        ("barrier", "shuffles"),
    ],
)
def test_the_fix_is_that_of_the_dominant_reason(kernel, reason, word) -> None:
    found = kernel("warp_stall", stalls={reason: 50.0, "wait": 49.0})
    assert word in " ".join(found.recommendations)
    assert found.observed[f"{reason}_pct"] == 50.0


def test_an_unknown_stall_is_not_zero(kernel) -> None:
    unknown = {stall_counter("mio_throttle"): None}
    assert kernel("warp_stall", unknown, stalls={}) == (stall_counter("mio_throttle"),)
    # One that is known to be high decides, whatever the unknown one is.
    assert kernel("warp_stall", unknown, stalls={"barrier": 61.0}).severity == "critical"


def test_a_counter_that_the_chip_lacks_does_not_keep_the_tool_silent(kernel) -> None:
    assert kernel("warp_stall", {stall_counter("gmma"): None}, stalls={}) is None


@pytest.mark.parametrize(
    ("pct", "severity"), [(30.0, None), (30.1, "high"), (50.0, "high"), (50.1, "critical")]
)
def test_barriers_speak_above_30_and_are_critical_above_50(kernel, pct, severity) -> None:
    found = kernel("barrier_stall", stalls={"barrier": pct})
    assert (found and found.severity) == severity


def test_barriers_show_how_to_reduce_within_a_warp(kernel) -> None:
    assert "__shfl_down_sync" in kernel("barrier_stall", stalls={"barrier": 40.0}).code_example
