"""Torch's operations in one call on a CPU, and the gaps between them, from a trace.

An operation's time is what none within it takes. A gap is time of the calling thread outside every
operation: the interpreter, and what the module calls that is no operation of torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kopt.tools.collect.trace_events import CALL_MARK, TraceEvent

INTERPRETER_US = 12.0
"""A gap up to this long may be the interpreter alone: calling a module or a function and reaching
the next operation takes 2 to 10 us."""
_COMPILED = ("Torch-Compiled Region", "## Call CompiledFxGraph", "CompiledFunction")
"""Ranges within which what is no operation is a kernel of Inductor's."""
INDUCTOR = "inductor::compiled"


@dataclass(slots=True)
class CallTimes:
    """One call."""

    order: list[str] = field(default_factory=list)
    """Names of the operations, as they began."""
    times_us: dict[str, float] = field(default_factory=dict)
    launches: dict[str, int] = field(default_factory=dict)
    gaps_us: list[float] = field(default_factory=list)
    """In order; one more than the outermost operations, each may be 0."""
    span_us: float = 0.0


def call_times(events: Sequence[TraceEvent], *, mark: str = CALL_MARK) -> list[CallTimes]:
    """Return what each marked call did, in order.

    Args:
        events: of a trace, by their start.
        mark: name of the ranges around each call.
    """
    return [
        _of_call(call, events)
        for call in events
        if call.name == mark and call.category == "user_annotation"
    ]


def merged(calls: Sequence[CallTimes]) -> CallTimes:
    """Return one call for several, at its least disturbed.

    Where all did the same, each gap is the shortest of that place, and the operations are those of
    the shortest call; otherwise the shortest call stands alone.
    """
    best = min(calls, key=lambda call: call.span_us)
    if any(call.order != best.order or len(call.gaps_us) != len(best.gaps_us) for call in calls):
        return best
    gaps_us = [min(gap) for gap in zip(*(call.gaps_us for call in calls), strict=True)]
    return CallTimes(best.order, best.times_us, best.launches, gaps_us, best.span_us)


def own_time(gaps_us: Sequence[float]) -> tuple[float, float]:
    """Return (time that is surely no interpreter's, time that may be either) of some gaps."""
    unsure_us = sum(min(gap, INTERPRETER_US) for gap in gaps_us)
    return sum(gaps_us) - unsure_us, unsure_us


def _of_call(call: TraceEvent, events: Sequence[TraceEvent]) -> CallTimes:
    within = [
        event
        for event in events
        if event is not call
        and event.category in ("cpu_op", "user_annotation")
        and event.thread == call.thread
        and call.start_us <= event.start_us
        and event.end_us <= call.end_us
    ]
    within.sort(key=lambda event: (event.start_us, -event.end_us))
    times = CallTimes(span_us=call.us)
    walk = _Walk(times, now_us=call.start_us)
    for event in within:
        walk.close_until(event.start_us)
        walk.begin(event)
    walk.close_until(call.end_us)
    walk.advance(call.end_us)
    times.gaps_us.append(walk.gap_us)
    return times


class _Walk:
    """Goes along a thread's time, and gives each stretch to the innermost open operation."""

    def __init__(self, times: CallTimes, *, now_us: float) -> None:
        self._times = times
        self._now_us = now_us
        self._open: list[tuple[float, str | None]] = []
        self.gap_us = 0.0

    def begin(self, event: TraceEvent) -> None:
        self.advance(event.start_us)
        name = self._name(event)
        if name is not None:
            if self._innermost() is None:
                self._times.gaps_us.append(self.gap_us)
                self.gap_us = 0.0
            self._times.order.append(name)
            self._times.launches[name] = self._times.launches.get(name, 0) + 1
        self._open.append((event.end_us, name))

    def close_until(self, now_us: float) -> None:
        while self._open and self._open[-1][0] <= now_us:
            self.advance(self._open[-1][0])
            self._open.pop()

    def advance(self, to_us: float) -> None:
        passed_us = max(0.0, to_us - self._now_us)
        self._now_us = max(self._now_us, to_us)
        name = self._innermost()
        if name is None:
            self.gap_us += passed_us
        else:
            self._times.times_us[name] = self._times.times_us.get(name, 0.0) + passed_us

    def _innermost(self) -> str | None:
        """The innermost operation; ranges that somebody only marked are looked through."""
        return next((name for _, name in reversed(self._open) if name is not None), None)

    @staticmethod
    def _name(event: TraceEvent) -> str | None:
        if event.name.startswith(_COMPILED):
            return INDUCTOR
        return event.name if event.category == "cpu_op" and "::" in event.name else None
