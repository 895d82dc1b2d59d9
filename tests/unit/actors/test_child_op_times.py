"""A trace's operations and gaps, by hand."""

from __future__ import annotations

import pytest

from kopt.actors.child.op_times import INDUCTOR, call_times, merged, own_time
from kopt.tools.collect.trace_events import CALL_MARK, TraceEvent


def op(name: str, start_us: float, end_us: float, *, thread: int = 1, cat: str = "cpu_op"):
    return TraceEvent(name, cat, start_us, end_us, thread=thread)


def mark(start_us: float, end_us: float) -> TraceEvent:
    return op(CALL_MARK, start_us, end_us, cat="user_annotation")


def test_an_operation_has_the_time_that_none_within_takes() -> None:
    # 10 before, relu 10-30 of which clamp has 12-28, 5 between, mul 35-45, 5 behind.
    (call,) = call_times(
        [
            mark(0, 50),
            op("aten::relu", 10, 30),
            op("aten::clamp_min", 12, 28),
            op("aten::mul", 35, 45),
        ]
    )
    assert call.times_us == {"aten::relu": 4.0, "aten::clamp_min": 16.0, "aten::mul": 10.0}
    assert call.gaps_us == [10.0, 5.0, 5.0]
    assert call.order == ["aten::relu", "aten::clamp_min", "aten::mul"]
    assert call.span_us == 50.0


def test_ranges_that_somebody_marked_are_looked_through() -> None:
    (call,) = call_times(
        [mark(0, 20), op("my part", 5, 15, cat="user_annotation"), op("aten::mul", 8, 12)]
    )
    assert call.times_us == {"aten::mul": 4.0}
    assert call.gaps_us == [8.0, 8.0]


def test_what_runs_within_a_compiled_region_is_inductors() -> None:
    (call,) = call_times(
        [mark(0, 100), op("Torch-Compiled Region: 0/0", 10, 90), op("aten::empty", 20, 25)]
    )
    assert call.times_us == {INDUCTOR: 75.0, "aten::empty": 5.0}
    assert call.gaps_us == [10.0, 10.0]


def test_other_threads_and_other_times_are_not_the_calls() -> None:
    (call,) = call_times(
        [op("aten::a", 1, 2), mark(10, 20), op("aten::b", 12, 14, thread=2), op("aten::c", 21, 22)]
    )
    assert call.times_us == {}
    assert call.gaps_us == [10.0]


def test_of_equal_calls_each_gap_is_the_shortest_of_its_place() -> None:
    calls = call_times([mark(0, 30), op("aten::a", 10, 20), mark(40, 60), op("aten::a", 41, 50)])
    # Gaps 10 and 10, then 1 and 10; the second call is the shorter one.
    assert merged(calls).gaps_us == [1.0, 10.0]
    assert merged(calls).times_us == {"aten::a": 9.0}


def test_of_unequal_calls_the_shortest_stands_alone() -> None:
    calls = call_times([mark(0, 30), op("aten::a", 10, 20), mark(40, 60), op("aten::b", 45, 50)])
    assert merged(calls).gaps_us == [5.0, 10.0]


def test_a_short_gap_may_be_the_interpreters() -> None:
    # Of 12 us at most each: 5 + 12 + 0 may be, 88 of the second cannot.
    assert own_time([5.0, 100.0, 0.0]) == pytest.approx((88.0, 17.0))
