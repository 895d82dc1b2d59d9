"""A real trace of torch.profiler on a GPU: marked calls, launches, blocking calls, owners."""

from __future__ import annotations

import pytest

from kopt.tools.collect.kineto import CALL_MARK, TraceReport, parse_trace

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


def traced(forward, tmp_path) -> TraceReport:
    x = torch.randn(2**26, device="cuda")
    for _ in range(3):
        forward(x)
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(5):
            with torch.profiler.record_function(CALL_MARK):
                forward(x)
            torch.cuda.synchronize()
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    return parse_trace(path.read_text())


def test_one_elementwise_call_is_one_launch_and_no_wait(tmp_path) -> None:
    report = traced(torch.exp, tmp_path)
    timeline = report.timeline
    assert report.num_calls == 5
    assert (timeline.launches, timeline.syncs) == (1, 0)
    assert [kernel.owner for kernel in report.kernels] == ["aten"]
    assert timeline.busy_us == pytest.approx(report.kernels[0].time_us)
    assert timeline.busy_us <= timeline.e2e_us


def test_a_scalar_read_back_blocks_and_copies(tmp_path) -> None:
    report = traced(lambda x: x / x.max().item(), tmp_path)
    assert report.timeline.syncs >= 1
    assert report.timeline.memcpy_us > 0
