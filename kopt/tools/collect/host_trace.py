"""System-level figures of one forward call on a CPU, from a trace of torch.profiler.

A CPU launches nothing: the torch operations of a call stand for its kernels, each with the time
that it does not spend within others. What no operation covers is the candidate's own code (a
function of its extension, Python): one entry, `OWN_CODE`. Idle time, launches and blocking calls
have no meaning here and stay unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from kopt.evidence import KernelOwner, Timeline
from kopt.tools.collect.kineto import TracedKernel, TraceReport
from kopt.tools.collect.trace_events import CALL_MARK, SOURCE, TraceEvent, read_events
from kopt.tools.collect.unreadable import Remarks, UnreadableProfile

OWN_CODE = "code outside torch operations"
"""The rest of a call: the candidate's extension, and Python."""
_COPIES = frozenset({"aten::copy_", "aten::clone", "aten::contiguous", "aten::_to_copy"})
_LIBRARY = (
    "aten::addmm",
    "aten::mm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::addbmm",
    "aten::mkldnn",
    "aten::_convolution",
    "aten::thnn_conv",
    "aten::slow_conv",
    "mkldnn::",
)
"""What is done by oneDNN or a BLAS."""


def parse_host_trace(text: str, *, mark: str = CALL_MARK) -> TraceReport:
    """Return the operations of the median call in a trace of a CPU.

    Args:
        text: the exported Chrome trace.
        mark: name of the ranges around each call.

    Raises:
        UnreadableProfile: it is no trace, it is cut off, or no call is marked in it.
    """
    remarks = Remarks()
    events = read_events(text, remarks=remarks)
    calls = [event for event in events if event.name == mark and event.us > 0]
    if not calls:
        raise UnreadableProfile(SOURCE, f"no call is marked in it (no range {mark!r})")
    call = sorted(calls, key=lambda each: each.us)[(len(calls) - 1) // 2]
    within = [
        event
        for event in events
        if event.category == "cpu_op"
        and event.thread == call.thread
        and event.start_us >= call.start_us
        and event.end_us <= call.end_us
    ]
    own_us = _own_times(within)
    times: dict[str, list[float]] = {}
    for event, us in zip(within, own_us, strict=True):
        times.setdefault(event.name, []).append(us)
    kernels = [
        TracedKernel(
            name=name,
            owner=_owner(name),
            launches=len(each),
            time_us=sum(each),
            share=sum(each) / call.us,
        )
        for name, each in times.items()
    ]
    rest_us = max(0.0, call.us - sum(own_us))
    kernels.append(
        TracedKernel(
            name=OWN_CODE, owner="user", launches=1, time_us=rest_us, share=rest_us / call.us
        )
    )
    return TraceReport(
        timeline=Timeline(
            e2e_us=call.us,
            memcpy_us=sum(sum(times[name]) for name in _COPIES & times.keys()),
        ),
        kernels=tuple(sorted(kernels, key=lambda kernel: (-kernel.time_us, kernel.name))),
        num_calls=len(calls),
        remarks=remarks.lines(),
    )


def _own_times(events: Sequence[TraceEvent]) -> list[float]:
    """Of each event, the time that none of the events within it takes; they are nested."""
    own_us = [event.us for event in events]
    open_events: list[int] = []
    for at, event in enumerate(events):
        while open_events and events[open_events[-1]].end_us <= event.start_us:
            open_events.pop()
        if open_events:
            own_us[open_events[-1]] -= event.us
        open_events.append(at)
    return [max(0.0, us) for us in own_us]


def _owner(name: str) -> KernelOwner:
    if name.startswith(_LIBRARY):
        return "library"
    return "aten" if name.startswith(("aten::", "prims::", "torch::")) else "user"
