"""Evidence: what profilers measured of one candidate. Missing is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

EvidenceLevel = Literal["ncu", "timeline", "static"]
KernelOwner = Literal["user", "library", "aten"]
BottleneckClass = Literal["compute", "memory", "latency", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvidence:
    """One kernel of one forward call."""

    name: str
    owner: KernelOwner
    launches: int
    time_us: float | None = None
    share: float | None = None
    """Of the call's device time, 0 to 1."""
    metrics: dict[str, float | None] = field(default_factory=dict)
    """Counter name (ncu's) to value in base units."""
    sass: dict[str, int] = field(default_factory=dict)
    """Mnemonic to number of instructions in the binary."""
    registers: int | None = None
    spill_bytes: int | None = None
    smem_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """System-level figures of one forward call."""

    e2e_us: float
    busy_us: float | None = None
    launches: int | None = None
    launch_overhead_pct: float | None = None
    """100 · (1 - busy ÷ end-to-end)."""
    avg_launch_ns: float | None = None
    gaps_us: tuple[float, ...] = ()
    """Idle gaps above max(1 % of end-to-end, 5 us)."""
    syncs: int | None = None
    memcpy_us: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Stage 1 of KernelPro: theoretical class against measured."""

    flops: float | None = None
    bytes: float | None = None
    """Compulsory traffic: inputs, parameters and outputs once each."""
    intensity: float | None = None
    """FLOP per byte."""
    ridge: float | None = None
    """FLOP per byte where the roofs meet, at the precision in force."""
    theoretical: BottleneckClass | None = None
    measured: BottleneckClass | None = None
    bottleneck: BottleneckClass | None = None
    """`class` in JSON: the theoretical one where they disagree."""
    confidence: Literal["high", "medium", "low"] | None = None
    sol_us: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Energy of one forward call."""

    proxy_pj: float | None = None
    """KernelPro Eq. 4, picojoules."""
    millijoules: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything measured of one candidate on one device."""

    device: str
    arch: str
    """Such as `sm_90`, or the CPU's machine name."""
    level: EvidenceLevel
    kernels: tuple[KernelEvidence, ...] = ()
    timeline: Timeline | None = None
    roofline: Roofline | None = None
    energy: Energy | None = None
