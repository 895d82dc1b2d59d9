"""Evidence: what profilers measured of one candidate. Missing is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

EvidenceLevel = Literal["ncu", "timeline", "static"]
KernelOwner = Literal["user", "library", "aten"]
BottleneckClass = Literal["compute", "memory", "latency", "mixed"]
Tier = Literal["near-optimal", "memory-bound", "compute-bound", "underutilized"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One of the profiler's own rules, as it applied to a kernel (ncu's details page)."""

    name: str
    """ncu's identifier, such as `CPIStall`."""
    section: str
    kind: Literal["OPT", "INF"]
    """Advice, or a remark."""
    message: str
    speedup_pct: float | None = None
    """ncu's estimate, per cent."""
    speedup_scope: Literal["global", "local"] | None = None
    """Of the kernel, or of the part that the rule is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvidence:
    """One kernel of one forward call: its launches with one grid and block taken together."""

    name: str
    owner: KernelOwner
    launches: int
    """In one call."""
    time_us: float | None = None
    """Of all its launches in one call."""
    share: float | None = None
    """Of the call's device time, 0 to 1."""
    metrics: dict[str, float | None] = field(default_factory=dict)
    """Counter name (ncu's) to value in base units, the mean of a launch."""
    sass: dict[str, int] = field(default_factory=dict)
    """Mnemonic to number of instructions in the binary; empty where it was not read. A name with a
    dot (`LDG.128`) counts those among its mnemonic's that have the modifier."""
    registers: int | None = None
    """Of one thread."""
    spill_bytes: int | None = None
    """Stores and loads of spilled registers in the binary, as the compiler counts them."""
    stack_bytes: int | None = None
    """Local memory of one thread: spills and arrays."""
    smem_bytes: int | None = None
    """Shared memory of one block."""
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """System-level figures of one forward call."""

    e2e_us: float
    """From the first launch's start to the device's last work."""
    busy_us: float | None = None
    """Time in which the device did anything."""
    launches: int | None = None
    launch_overhead_pct: float | None = None
    """100 · (1 - busy ÷ end-to-end)."""
    launch_api_pct: float | None = None
    """Host time within launch calls, of the end-to-end time."""
    avg_launch_ns: float | None = None
    """Host time of one launch call."""
    gaps_us: tuple[float, ...] = ()
    """Idle gaps above max(1 % of end-to-end, 5 us), the longest first."""
    syncs: int | None = None
    """Calls that block the host until the device is done."""
    sync_us: float | None = None
    """Host time within them."""
    memcpy_us: float | None = None
    memcpy_bytes: float | None = None
    memset_us: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Stage 1 of KernelPro: theoretical class against measured."""

    flops: float | None = None
    matrix_flops: float | None = None
    """Those of `flops` in matrix products, convolutions and attention."""
    bytes: float | None = None
    """Compulsory traffic: inputs, parameters and outputs once each."""
    unfused_bytes: float | None = None
    """Traffic of the reference with each operation on its own."""
    precision: str | None = None
    """Of the matrix work: `fp32`, `tf32`, `bf16`, …"""
    intensity: float | None = None
    """FLOP per byte."""
    ridge: float | None = None
    """FLOP per byte where the roofs meet, at the precision in force."""
    theoretical: BottleneckClass | None = None
    measured: BottleneckClass | None = None
    bottleneck: BottleneckClass | None = None
    """`class` in JSON: the theoretical one where they disagree."""
    confidence: Literal["high", "medium", "low"] | None = None
    tier: Tier | None = None
    """KernelOPT's, from measured throughputs."""
    sol_us: float | None = None
    """Speed of light by data-sheet peaks."""
    reachable_us: float | None = None
    """The same by peaks that were reached on such a device, with one launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Energy of one forward call."""

    proxy_pj: float | None = None
    """KernelPro Eq. 4, picojoules."""
    corrected_pj: float | None = None
    """The same with unused sector bytes in place of sectors per request, picojoules."""
    millijoules: float | None = None
    """Measured, without the idle draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything measured of one candidate on one device."""

    device: str
    arch: str
    """Such as `sm_90`, or the CPU's machine name."""
    level: EvidenceLevel
    time_us: float | None = None
    """Median of one call as the evaluation timed it; profilers slow what they look at."""
    kernels: tuple[KernelEvidence, ...] = ()
    timeline: Timeline | None = None
    roofline: Roofline | None = None
    energy: Energy | None = None
