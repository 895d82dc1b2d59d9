"""The times that a child says a block took: untrusted until they are seen to be numbers."""

from __future__ import annotations

from kopt.actors.supervisor.child import ChildFailed

DAY_US = 86_400_000_000.0


def told_times(answer: dict[str, object], *, expected: int) -> tuple[list[float], float]:
    """Return a child's times, which are untrusted: those of the calls, and the total.

    Raises:
        ChildFailed: they are not that many numbers above 0.
    """
    calls_us, total_us = answer.get("calls_us"), answer.get("total_us")
    if isinstance(calls_us, list) and len(calls_us) == expected:
        times_us = [_time_us(each) for each in (*calls_us, total_us)]
        if None not in times_us:
            *each_us, all_us = [each for each in times_us if each is not None]
            return each_us, all_us
    raise ChildFailed("raised", "clock", f"the clock gave no {expected} times above 0")


def _time_us(value: object) -> float | None:
    """A time above 0 and below a day; None for whatever else a child may send."""
    if isinstance(value, float | int) and not isinstance(value, bool) and 0 < value < DAY_US:
        return float(value)
    return None
