"""Traces of torch.profiler: one call's figures by hand, calls told apart, bad input."""

from __future__ import annotations

import json

import pytest

from kopt.tools.collect.kineto import CALL_MARK, parse_trace
from kopt.tools.collect.unreadable import UnreadableProfile


def event(cat: str, name: str, ts: float, dur: float, **args) -> dict:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args}


def trace(*events: object) -> str:
    return json.dumps({"schemaVersion": 1, "traceEvents": list(events)})


ONE_CALL = (
    event("cuda_driver", "cuLaunchKernelEx", 0, 4, correlation=1),
    event("kernel", "triton_a", 8, 10, correlation=1),
    event("cuda_runtime", "cudaLaunchKernel", 10, 4, correlation=2),
    event("kernel", "sm90_xmma_gemm", 38, 20, correlation=2),
    event("cuda_runtime", "cudaMemsetAsync", 50, 1, correlation=3),
    event("gpu_memset", "Memset (Device)", 58, 2, correlation=3, bytes=64),
    event("cuda_runtime", "cudaDeviceSynchronize", 60, 5),
)


def test_one_call_by_hand() -> None:
    # From the first launch at 0 to the end of the fill at 60; busy 10 + 20 + 2; one gap of 20.
    report = parse_trace(trace(*ONE_CALL))
    timeline = report.timeline
    assert timeline.e2e_us == 60.0
    assert timeline.busy_us == 32.0
    assert timeline.launch_overhead_pct == pytest.approx(100 * 28 / 60)
    assert timeline.launches == 2
    assert timeline.avg_launch_ns == 4000.0
    assert timeline.launch_api_pct == pytest.approx(100 * 8 / 60)
    assert timeline.gaps_us == (20.0,)
    assert timeline.memset_us == 2.0
    assert timeline.memcpy_us == 0.0
    # The harness waits at the end: that is no fault of the call.
    assert timeline.syncs == 0


def test_kernels_with_their_owners_and_shares() -> None:
    first, second = parse_trace(trace(*ONE_CALL)).kernels
    assert (first.name, first.owner, first.time_us) == ("sm90_xmma_gemm", "library", 20.0)
    assert (second.name, second.owner, second.launches) == ("triton_a", "user", 1)
    assert second.share == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("length", "gap", "kept"),
    [(100.0, 5.0, ()), (100.0, 5.1, (5.1,)), (2000.0, 20.0, ()), (2000.0, 20.3, (20.3,))],
)
def test_a_gap_counts_above_one_per_cent_and_five_microseconds(length, gap, kept) -> None:
    report = parse_trace(
        trace(event("kernel", "a", 0, 1), event("kernel", "b", 1 + gap, length - 1 - gap))
    )
    assert report.timeline.e2e_us == pytest.approx(length)
    assert report.timeline.gaps_us == pytest.approx(kept)


def test_work_that_overlaps_is_busy_once() -> None:
    report = parse_trace(
        trace(
            event("kernel", "a", 0, 10),
            event("kernel", "b", 2, 3),
            event("gpu_memcpy", "Memcpy DtoD", 8, 4, bytes=4096),
        )
    )
    assert report.timeline.busy_us == 12.0
    assert report.timeline.gaps_us == ()
    assert report.timeline.memcpy_bytes == 4096.0


@pytest.mark.parametrize(
    ("name", "launches", "syncs"),
    [
        ("cuLaunchKernel", 1, 0),
        ("cudaLaunchKernelExC", 1, 0),
        ("cudaLaunchCooperativeKernel", 1, 0),
        ("cudaGraphLaunch", 1, 0),
        ("hipModuleLaunchKernel", 1, 0),
        ("cudaStreamSynchronize", 0, 1),
        ("cudaEventSynchronize", 0, 1),
        ("cuCtxSynchronize", 0, 1),
        ("cudaMemcpy", 0, 1),
        ("cudaMemcpyAsync", 0, 0),
        ("cudaStreamIsCapturing", 0, 0),
    ],
)
def test_which_host_calls_launch_and_which_block(name, launches, syncs) -> None:
    report = parse_trace(
        trace(
            event("user_annotation", CALL_MARK, 0, 20),
            event("cuda_runtime", name, 1, 2, correlation=1),
            event("cuda_runtime", "cudaLaunchKernel", 5, 2, correlation=2),
            event("kernel", "k", 8, 4, correlation=2),
        )
    )
    assert (report.timeline.launches, report.timeline.syncs) == (1 + launches, syncs)


def marked(start: float, *, kernel_us: float, correlation: int) -> list[dict]:
    return [
        event("user_annotation", CALL_MARK, start, 5),
        event("cuda_runtime", "cudaLaunchKernel", start, 2, correlation=correlation),
        event("kernel", "k", start + 10, kernel_us, correlation=correlation),
        event("cuda_runtime", "cudaDeviceSynchronize", start + 6, kernel_us),
    ]


def test_of_several_calls_the_median_one_is_told_whole() -> None:
    calls = [
        *marked(0, kernel_us=40, correlation=1),
        *marked(100, kernel_us=30, correlation=2),
        *marked(200, kernel_us=900, correlation=3),
    ]
    report = parse_trace(trace(*calls))
    assert report.num_calls == 3
    assert report.timeline.e2e_us == 50.0
    assert report.kernels[0].time_us == 40.0
    # Blocking after each mark is the harness's.
    assert report.timeline.syncs == 0


def test_device_work_goes_to_the_call_that_launched_it() -> None:
    # The kernel of the first call runs after the second call began.
    calls = [
        event("user_annotation", CALL_MARK, 0, 5),
        event("cuda_runtime", "cudaLaunchKernel", 0, 2, correlation=1),
        event("user_annotation", CALL_MARK, 10, 5),
        event("cuda_runtime", "cudaLaunchKernel", 10, 2, correlation=2),
        event("kernel", "first", 20, 5, correlation=1),
        event("kernel", "second", 25, 5, correlation=2),
        event("cuda_runtime", "cudaLaunchKernel", 40, 2, correlation=9),
        event("kernel", "of nobody", 50, 5, correlation=9),
    ]
    report = parse_trace(trace(*calls))
    assert report.timeline.e2e_us == 20.0
    assert [kernel.name for kernel in report.kernels] == ["second"]


def test_a_graph_s_kernels_share_their_launch() -> None:
    report = parse_trace(
        trace(
            event("user_annotation", CALL_MARK, 0, 5),
            event("cuda_runtime", "cudaGraphLaunch", 1, 2, correlation=4),
            *(event("kernel", "k", 10 + 4 * at, 3, correlation=4) for at in range(5)),
        )
    )
    assert report.timeline.launches == 1
    assert report.kernels[0].launches == 5


def test_many_gaps_keep_their_sum() -> None:
    events = [event("kernel", "k", 20 * at, 1) for at in range(301)]
    gaps = parse_trace(trace(*events)).timeline.gaps_us
    assert gaps == ()  # 19 us each, of 6001: below one per cent
    events = [event("kernel", "k", 100 * at, 1) for at in range(51)]
    assert sum(parse_trace(trace(*events)).timeline.gaps_us) == 50 * 99.0


def test_events_that_are_nothing_are_passed_over() -> None:
    report = parse_trace(
        trace(
            event("kernel", "k", 0, 5),
            {"ph": "X", "cat": "kernel", "name": "no time"},
            {"ph": "X", "cat": "kernel", "name": "n", "ts": "1", "dur": 2},
            {"ph": "X", "cat": "kernel", "name": "n", "ts": 1, "dur": -2},
            {"ph": "i", "name": "instant"},
            17,
            None,
        )
    )
    assert report.kernels[0].launches == 1
    assert report.remarks == (
        "an event without a name, a time or a duration was passed over (3 times)",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        (trace(*ONE_CALL)[:-40], "not whole JSON"),
        ('{"other": 1}', "no Chrome trace"),
        ('"text"', "no Chrome trace"),
        (trace(), "nothing ran on the device"),
        (trace(event("cpu_op", "aten::add", 0, 5)), "nothing ran on the device"),
        (trace(event("kernel", "k", 5, 0)), "no duration"),
        ("[" * 100_000, "not whole JSON"),
    ],
)
def test_a_trace_that_is_none_is_named(text, words) -> None:
    with pytest.raises(UnreadableProfile, match=words) as caught:
        parse_trace(text)
    assert len(str(caught.value).splitlines()) == 1
