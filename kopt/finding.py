"""A finding: what a micro-profiling tool concluded from evidence (KernelPro §4.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

Severity = Literal["critical", "high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One diagnosed bottleneck, with what to do about it."""

    tool: str
    severity: Severity
    title: str
    summary: str
    root_cause: str
    recommendations: tuple[str, ...]
    """Ranked, the best first."""
    expected_improvement: str
    observed: dict[str, float] = field(default_factory=dict)
    thresholds: dict[str, float] = field(default_factory=dict)
    code_example: str | None = None
    kernel: str | None = None
    """Name of the kernel it is about; None for the whole call."""
