"""The timeline of one forward call from a trace of torch.profiler (Chrome trace JSON, Kineto).

A trace may hold several calls, each marked by a `record_function` of the name `CALL_MARK`; the one
of median end-to-end time is told of, so that every figure is of one call that took place. Without
marks the trace is one call, and blocking calls after the last launch are the harness's.

Device work belongs to the call whose host calls launched it (by correlation id, else by time). The
end-to-end time runs from the first launch to the end of the last device work;
`launch_overhead_pct` is its idle share. A gap counts above max(1 % of it, 5 us) (KernelPro §3.2.3).
Launches include those of the driver interface, which is how Triton launches.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kopt.evidence import KernelOwner, Timeline
from kopt.tools.collect.owners import owner
from kopt.tools.collect.trace_events import CALL_MARK, SOURCE, TraceEvent, read_events
from kopt.tools.collect.unreadable import Remarks, UnreadableProfile

GAP_SHARE = 0.01
GAP_LEAST_US = 5.0
MAX_GAPS = 100
"""Gaps that are kept, the longest; the sum of the rest is added to the last."""

_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_HOST = frozenset({"cuda_runtime", "cuda_driver"})
_LAUNCH = re.compile(
    r"(cudaLaunchKernel|cudaLaunchKernelExC|cudaLaunchCooperativeKernel|cuLaunchKernel|"
    r"cuLaunchKernelEx|cuLaunchCooperativeKernel|cudaGraphLaunch|cuGraphLaunch|hipLaunchKernel|"
    r"hipModuleLaunchKernel|hipExtModuleLaunchKernel|hipGraphLaunch)(_v\d+|_ptsz)?"
)
_SYNC = re.compile(
    r"(cuda|hip)(Device|Stream|Event)Synchronize|cu(Ctx|Stream|Event)Synchronize|"
    r"(cuda|hip)Memcpy(2D|3D)?|cuMemcpy(DtoH|HtoD)(_v2)?"
)
"""Blocks the host; copies are those without Async in their name."""
_GIVES_WORK = re.compile(r"Launch|Memcpy|Memset")


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedKernel:
    """One kernel of the call."""

    name: str
    owner: KernelOwner
    launches: int
    time_us: float
    share: float
    """Of the kernels' time in the call."""
    registers: int | None = None
    """Of one thread; None where its launches differ."""
    smem_bytes: int | None = None
    """Of one block; likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReport:
    """What a trace says of one call."""

    timeline: Timeline
    kernels: tuple[TracedKernel, ...]
    """The longest first."""
    num_calls: int
    """Calls that the trace holds."""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Call:
    """The events of one call, each list in order of time."""

    device: list[TraceEvent]
    host: list[TraceEvent]

    @property
    def span_us(self) -> tuple[float, float]:
        launches = [event.start_us for event in self.host if _LAUNCH.fullmatch(event.name)]
        start = min([self.device[0].start_us, *launches])
        return start, max(event.end_us for event in self.device)

    @property
    def e2e_us(self) -> float:
        start, end = self.span_us
        return end - start


def parse_trace(text: str, *, own: Iterable[str] = (), mark: str = CALL_MARK) -> TraceReport:
    """Return the timeline and the kernels of one call in a trace.

    Args:
        text: the exported Chrome trace.
        own: names of the candidate's kernels, where they are known.
        mark: name of the ranges around each call.

    Raises:
        UnreadableProfile: it is no trace, it is cut off, or nothing ran on the device in it.
    """
    remarks = Remarks()
    events = read_events(text, remarks=remarks)
    calls = [call for call in _calls(events, mark) if call.device]
    if not calls:
        raise UnreadableProfile(SOURCE, "nothing ran on the device in it (no kernel, copy or fill)")
    call = sorted(calls, key=lambda each: each.e2e_us)[(len(calls) - 1) // 2]
    if call.e2e_us <= 0:
        raise UnreadableProfile(SOURCE, "its device work has no duration")
    return TraceReport(
        timeline=_timeline(call),
        kernels=_kernels(call, own=tuple(own)),
        num_calls=len(calls),
        remarks=remarks.lines(),
    )


def _calls(events: Sequence[TraceEvent], mark: str) -> list[_Call]:
    device = [event for event in events if event.category in _DEVICE]
    host = [event for event in events if event.category in _HOST]
    marks = [
        event for event in events if event.name == mark and not event.category.startswith("gpu")
    ]
    if not marks:
        return [_Call(device, _without_last_waits(host))]
    calls = [_Call([], []) for _ in marks]
    starts_us = [marked.start_us for marked in marks]
    launched_by: dict[int, int] = {}
    for event in host:
        at = bisect_right(starts_us, event.start_us) - 1
        if at >= 0 and event.start_us < marks[at].end_us:
            calls[at].host.append(event)
            if event.correlation is not None:
                launched_by[event.correlation] = at
        elif event.correlation is not None:
            launched_by[event.correlation] = -1
    for event in device:
        at = bisect_right(starts_us, event.start_us) - 1
        if event.correlation is not None:
            at = launched_by.get(event.correlation, at)
        if at >= 0:
            calls[at].device.append(event)
    return calls


def _without_last_waits(host: list[TraceEvent]) -> list[TraceEvent]:
    """The host's calls up to the last that gave the device work: what follows waits for it."""
    gives = [at for at, event in enumerate(host) if _GIVES_WORK.search(event.name)]
    return host[: gives[-1] + 1] if gives else host


def _timeline(call: _Call) -> Timeline:
    e2e_us = call.e2e_us
    busy_us, gaps_us = _busy_and_gaps(call.device, least_us=max(GAP_SHARE * e2e_us, GAP_LEAST_US))
    launches = [event for event in call.host if _LAUNCH.fullmatch(event.name)]
    syncs = [event for event in call.host if _SYNC.fullmatch(event.name)]
    copies = [event for event in call.device if event.category == "gpu_memcpy"]
    kernels = sum(event.category == "kernel" for event in call.device)
    copied = [event.bytes for event in copies if event.bytes is not None]
    host_us = sum(event.us for event in launches)
    return Timeline(
        e2e_us=e2e_us,
        busy_us=busy_us,
        # A trace without host calls still says how many kernels ran.
        launches=len(launches) if launches else kernels,
        launch_overhead_pct=100.0 * max(0.0, 1.0 - busy_us / e2e_us),
        launch_api_pct=100.0 * host_us / e2e_us if launches else None,
        avg_launch_ns=1000.0 * host_us / len(launches) if launches else None,
        gaps_us=gaps_us,
        syncs=len(syncs) if call.host else None,
        sync_us=sum(event.us for event in syncs) if call.host else None,
        memcpy_us=sum(event.us for event in copies),
        memcpy_bytes=sum(copied) if len(copied) == len(copies) else None,
        memset_us=sum(event.us for event in call.device if event.category == "gpu_memset"),
    )


def _busy_and_gaps(
    device: Sequence[TraceEvent], *, least_us: float
) -> tuple[float, tuple[float, ...]]:
    """Time in which anything ran, and the gaps above a length, the longest first."""
    busy_us, end_us = 0.0, device[0].start_us
    gaps = []
    for event in device:
        if event.start_us > end_us:
            gaps.append(event.start_us - end_us)
        busy_us += max(0.0, event.end_us - max(event.start_us, end_us))
        end_us = max(end_us, event.end_us)
    kept = sorted((gap for gap in gaps if gap > least_us), reverse=True)
    if len(kept) > MAX_GAPS:
        kept = [*kept[: MAX_GAPS - 1], sum(kept[MAX_GAPS - 1 :])]
    return busy_us, tuple(kept)


def _kernels(call: _Call, *, own: tuple[str, ...]) -> tuple[TracedKernel, ...]:
    launches: dict[str, list[TraceEvent]] = {}
    for event in call.device:
        if event.category == "kernel":
            launches.setdefault(event.name, []).append(event)
    total_us = sum(event.us for each in launches.values() for event in each)
    kernels = [
        TracedKernel(
            name=name,
            owner=owner(name, own=own),
            launches=len(each),
            time_us=sum(event.us for event in each),
            share=sum(event.us for event in each) / total_us if total_us else 0.0,
            registers=_only({event.registers for event in each}),
            smem_bytes=_only({event.smem_bytes for event in each}),
        )
        for name, each in launches.items()
    ]
    return tuple(sorted(kernels, key=lambda kernel: (-kernel.time_us, kernel.name)))


def _only(values: set[int | None]) -> int | None:
    return next(iter(values)) if len(values) == 1 else None
