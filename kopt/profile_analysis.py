"""ProfileAnalysis: what a model made of a profile (KernelPro §3.2.3, the profiling agent)."""

from __future__ import annotations

from dataclasses import dataclass

from kopt.evidence import BottleneckClass
from kopt.finding import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileAnalysis:
    """A profile condensed: where the time goes, how bad it is, and what to do, in order."""

    bottleneck: BottleneckClass
    severity: Severity
    steps: tuple[str, ...]
    """What to change, ranked, the best first; at least one."""
    summary: str = ""
    """Why, in a sentence or two."""
