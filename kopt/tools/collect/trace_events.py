"""The events of a Chrome trace as torch.profiler writes it, whatever ran."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from kopt.tools.collect.unreadable import MAX_EVENTS, Remarks, UnreadableProfile, bounded

SOURCE = "trace"
CALL_MARK = "kopt_call"
"""Name of the ranges that are put around each forward call."""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One complete event."""

    name: str
    category: str
    """In lower case: `kernel`, `cuda_runtime`, `cpu_op`, …"""
    start_us: float
    end_us: float
    correlation: int | None = None
    """Joins a launch on the host with its kernel on the device."""
    bytes: float | None = None
    """That a copy moves."""
    thread: object = None
    """Of the host, or the stream of the device."""
    registers: int | None = None
    """Of one thread of a kernel."""
    smem_bytes: int | None = None
    """Of one block of a kernel."""

    @property
    def us(self) -> float:
        """Its duration."""
        return self.end_us - self.start_us


def read_events(text: str, *, remarks: Remarks) -> list[TraceEvent]:
    """Return a trace's complete events in order of their start.

    Args:
        text: the exported Chrome trace.
        remarks: gets a line for each kind of event that was passed over.

    Raises:
        UnreadableProfile: it is no trace, or is cut off.
    """
    try:
        record = json.loads(bounded(text, source=SOURCE))
    except (json.JSONDecodeError, RecursionError) as error:
        raise UnreadableProfile(SOURCE, f"not whole JSON ({error})") from None
    raw = record.get("traceEvents") if isinstance(record, dict) else record
    if not isinstance(raw, list):
        raise UnreadableProfile(SOURCE, "expected a list traceEvents; this is no Chrome trace")
    if len(raw) > MAX_EVENTS:
        remarks.note(f"only the first {MAX_EVENTS} of {len(raw)} events were read")
    events = []
    for each in raw[:MAX_EVENTS]:
        if isinstance(each, dict) and each.get("ph") == "X":
            event = _event(each)
            if event is None:
                remarks.note("an event without a name, a time or a duration was passed over")
            else:
                events.append(event)
    return sorted(events, key=lambda event: event.start_us)


def _event(raw: dict[str, object]) -> TraceEvent | None:
    name, category = raw.get("name"), raw.get("cat", "")
    start, duration, given = raw.get("ts"), raw.get("dur"), raw.get("args")
    arguments = given if isinstance(given, dict) else {}
    start_us, us = _finite(start), _finite(duration)
    if not isinstance(name, str) or start_us is None or us is None or us < 0:
        return None
    correlation = arguments.get("correlation")
    return TraceEvent(
        name=name,
        category=str(category).lower(),
        start_us=start_us,
        end_us=start_us + us,
        correlation=correlation if isinstance(correlation, int) else None,
        bytes=_finite(arguments.get("bytes")),
        thread=raw.get("tid"),
        registers=_whole(arguments.get("registers per thread")),
        smem_bytes=_whole(arguments.get("shared memory")),
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
