"""A subject on its way to its profile: what was collected of it so far, and how long that took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kopt.actors.evidence.binaries import Binaries
from kopt.actors.evidence.ncu import Counted
from kopt.actors.evidence.subjects import Subject
from kopt.energy_protocol import EnergyFigures
from kopt.evidence import Roofline
from kopt.tools.collect.kineto import TracedKernel, TraceReport

MAX_COUNTED = 8
"""Kernels of a candidate that are counted, by share of the timeline."""
COUNTED_SHARE = 0.01
"""Below this share of the device's time a kernel is not counted, unless it is the first."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """One subject."""

    subject: Subject
    build_dir: Path
    is_cached: bool
    builds: bool
    """Whether a run of it may build extensions."""
    trace: TraceReport | None = None
    binaries: Binaries = field(default_factory=Binaries)
    counted: Counted = field(default_factory=Counted)
    roofline: Roofline | None = None
    energy: EnergyFigures | None = None
    remarks: list[str] = field(default_factory=list)
    disagreement: str = ""
    failed: str = ""
    """Why it does not run, in one line."""
    took_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Note how long a stage takes."""
        began_s = time.monotonic()
        try:
            yield
        finally:
            self.took_s[name] = self.took_s.get(name, 0.0) + time.monotonic() - began_s

    @property
    def kernels(self) -> tuple[TracedKernel, ...]:
        """Of its timeline, the longest first."""
        return () if self.trace is None else self.trace.kernels


def that_matter(trace: TraceReport | None) -> list[str]:
    """Return the names of the kernels that are worth counting, the longest first."""
    kernels = () if trace is None else trace.kernels[:MAX_COUNTED]
    return [k.name for at, k in enumerate(kernels) if at == 0 or k.share >= COUNTED_SHARE]


def last_line(text: str) -> str:
    """Return the last line of a text that says anything, bounded."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no reason given"
