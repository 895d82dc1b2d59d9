"""What cannot be read of a profiler's output, and how much of it is looked at."""

from __future__ import annotations

from dataclasses import dataclass, field

from kopt.errors import KoptError

MAX_TEXT = 256 * 2**20
"""Characters of one output."""
MAX_LAUNCHES = 4096
"""Launches of one output that are read."""
MAX_EVENTS = 4_000_000
"""Events of a trace."""
MAX_KERNELS = 512
"""Kernels of one call."""
MAX_REMARKS = 8


class UnreadableProfile(KoptError):
    """A profiler's output is not what it should be. The candidate goes on without that evidence."""

    def __init__(self, source: str, why: str) -> None:
        super().__init__(source, why)
        self.source = source
        self.why = why

    def __str__(self) -> str:
        return f"{self.source}: {self.why}"


@dataclass(slots=True)
class Remarks:
    """Lines on what was passed over, each kind once, with how often."""

    _counts: dict[str, int] = field(default_factory=dict)

    def note(self, line: str) -> None:
        """Count one occurrence."""
        self._counts[line] = self._counts.get(line, 0) + 1

    def lines(self) -> tuple[str, ...]:
        """Return the lines, at most eight."""
        shown = list(self._counts.items())
        lines = [line if count == 1 else f"{line} ({count} times)" for line, count in shown]
        if len(lines) > MAX_REMARKS:
            lines = [*lines[: MAX_REMARKS - 1], f"… {len(lines) - MAX_REMARKS + 1} more remarks …"]
        return tuple(lines)


def bounded(text: str, *, source: str) -> str:
    """Return the text.

    Raises:
        UnreadableProfile: it is empty, or longer than is looked at.
    """
    if not text.strip():
        raise UnreadableProfile(source, "empty")
    if len(text) > MAX_TEXT:
        raise UnreadableProfile(
            source, f"{len(text)} characters; at most {MAX_TEXT} are read: profile fewer launches"
        )
    return text
