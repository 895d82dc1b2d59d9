"""Stage 1: the class of a problem's bottleneck, in theory and as measured (KernelPro §3.2.3).

The theoretical class compares the reference's FLOP per byte with the device's ridge; the measured
one its compute with its memory throughput. Agreement gives high confidence; where they differ, the
theoretical class stands, since it is the problem's and not the present kernel's. The papers publish
no cut-offs; these are the profiling notes' (§B.3). KernelOPT's tiers are its §4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kopt.evidence import BottleneckClass, Roofline, Tier
from kopt.tools.hardware import VECTOR, Gpu, Precision

MEMORY_BELOW = 0.5
"""Intensity ÷ ridge below which a problem is memory-bound."""
COMPUTE_ABOVE = 2.0
"""Intensity ÷ ridge above which it is compute-bound."""
LATENCY_SOL_US = 8.0
"""Below this a call's time is launches and latencies, whatever its bytes and FLOPs."""
LAUNCH_US = 3.0
"""Device time that a launch adds to its work, microseconds (2 to 4)."""
CLEAR_PCT = 10.0
"""Points of throughput by which one side leads clearly."""
IDLE_PCT = 40.0
"""Both throughputs below this: nothing is used, the kernel waits."""
NEAR_OPTIMAL_PCT = 80.0
"""KernelOPT: above this on either side there is little left."""

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one call of the reference has to do."""

    matrix_flops: tuple[tuple[Precision, float], ...] = ()
    """FLOPs of products, convolutions and attention, by the precision that the policy gives them
    (torch's defaults: matmul `fp32`, convolution `tf32`)."""
    vector_flops: float = 0.0
    """All other FLOPs: elementwise, norms, reductions, pooling."""
    bytes: float
    """Compulsory traffic: inputs, parameters and outputs once each."""
    unfused_bytes: float | None = None
    """Traffic with each operation on its own."""

    @property
    def flops(self) -> float:
        """All FLOPs."""
        return self.vector_flops + sum(flops for _, flops in self.matrix_flops)

    @property
    def precision(self) -> Precision:
        """The precision of most of the matrix work; `fp32` where there is none."""
        return max(self.matrix_flops, key=lambda part: part[1], default=("fp32", 0.0))[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """Least time of a problem's work on a device."""

    us: float
    limit: Literal["memory", "matrix", "vector"]
    """What takes it."""


def speed_of_light(work: Work, gpu: Gpu, *, reached: bool = False) -> Light | None:
    """Return the least time of the work; None where the GPU lacks a precision of it.

    max(bytes ÷ bandwidth, Σ FLOPs ÷ peak over the matrix pipes, the same over the vector pipes):
    pipes work side by side, so that this is a bound and no estimate.

    Args:
        work: of one call.
        gpu: whose peaks.
        reached: take peaks that were reached where they are known, and add one launch.
    """
    tflops = {**gpu.tflops, **gpu.reached_tflops} if reached else gpu.tflops
    if any(precision not in tflops for precision, _ in work.matrix_flops):
        return None
    tb_per_s = gpu.reached_tb_per_s if reached and gpu.reached_tb_per_s else gpu.tb_per_s
    matrix_us = sum(
        flops / tflops[precision] * 1e-6
        for precision, flops in work.matrix_flops
        if precision not in VECTOR
    )
    on_vector = work.vector_flops + sum(
        flops for precision, flops in work.matrix_flops if precision in VECTOR
    )
    times: list[tuple[float, Literal["memory", "matrix", "vector"]]] = [
        (work.bytes / tb_per_s * 1e-6, "memory"),
        (matrix_us, "matrix"),
        (on_vector / tflops["fp32"] * 1e-6, "vector"),
    ]
    us, limit = max(times, key=lambda each: each[0])
    return Light(us=us + LAUNCH_US if reached else us, limit=limit)


def theoretical_class(
    intensity: float, *, ridge: float, sol_us: float | None = None
) -> BottleneckClass:
    """Return the class by the roofline.

    Latency where the speed of light is below 8 us; else by intensity ÷ ridge: memory below 0.5,
    compute above 2, mixed between.

    Args:
        intensity: FLOP per compulsory byte.
        ridge: FLOP per byte where the roofs meet, above 0.
        sol_us: speed of light of one call; None where unknown.
    """
    if sol_us is not None and sol_us < LATENCY_SOL_US:
        return "latency"
    ratio = intensity / ridge
    if ratio < MEMORY_BELOW:
        return "memory"
    return "compute" if ratio > COMPUTE_ABOVE else "mixed"


def measured_class(compute_pct: float, *, memory_pct: float) -> BottleneckClass:
    """Return the class by measured throughputs of the reference, per cent of peak.

    Latency where both are below 40; else whichever leads by more than 10 points, or mixed.
    """
    if compute_pct < IDLE_PCT and memory_pct < IDLE_PCT:
        return "latency"
    if compute_pct - memory_pct > CLEAR_PCT:
        return "compute"
    return "memory" if memory_pct - compute_pct > CLEAR_PCT else "mixed"


def agreed_class(
    theoretical: BottleneckClass | None, measured: BottleneckClass | None
) -> tuple[BottleneckClass | None, Confidence | None]:
    """Return the class in force and how sure it is (KernelPro §3.2.3).

    Agreement: high. Disagreement: the theoretical one, medium. One of them alone: low.
    """
    if theoretical is None or measured is None:
        found = theoretical or measured
        return found, None if found is None else "low"
    return theoretical, "high" if theoretical == measured else "medium"


def disagreement(roofline: Roofline) -> str:
    """Return what it means that theory and measurement differ; empty where they do not."""
    pair = (roofline.theoretical, roofline.measured)
    if None in pair or pair[0] == pair[1]:
        return ""
    return _DIRECTIONS.get(pair, f"{pair[0]} in theory, {pair[1]} as measured.")


def classes_asked(roofline: Roofline | None) -> frozenset[BottleneckClass]:
    """Return the classes whose tools are asked: both where theory and measurement differ.

    Empty where nothing is known: then every tool is asked.
    """
    if roofline is None:
        return frozenset()
    named = (roofline.bottleneck or roofline.theoretical, roofline.measured)
    return frozenset(each for each in named if each is not None)


def tier(compute_pct: float, *, memory_pct: float) -> Tier:
    """Return KernelOPT's tier of a kernel from its throughputs, per cent of peak (its §4.2).

    `near-optimal` where either is above 80; else by which is greater; `underutilized` where they
    are equal.
    """
    if max(compute_pct, memory_pct) > NEAR_OPTIMAL_PCT:
        return "near-optimal"
    if memory_pct > compute_pct:
        return "memory-bound"
    return "compute-bound" if compute_pct > memory_pct else "underutilized"


def analyse_reference(
    work: Work,
    gpu: Gpu | None,
    *,
    compute_pct: float | None = None,
    memory_pct: float | None = None,
    is_launch_bound: bool = False,
) -> Roofline:
    """Return Stage 1's analysis of a problem on a device: KernelPro's `ReferenceAnalysis`.

    Args:
        work: of one call of the reference.
        gpu: None for a device that is not in the table: no ridge, no class by theory.
        compute_pct: measured compute throughput of the reference, per cent of peak; None: not
            measured.
        memory_pct: the same of memory.
        is_launch_bound: its timeline is idle for more than 20 % of the call.
    """
    intensity = work.flops / work.bytes if work.bytes > 0 else None
    ridge = None if gpu is None else gpu.ridge(work.precision)
    light = None if gpu is None else speed_of_light(work, gpu)
    reachable = None if gpu is None else speed_of_light(work, gpu, reached=True)
    theoretical: BottleneckClass | None = None
    if is_launch_bound:
        theoretical = "latency"
    elif intensity is not None and ridge is not None:
        theoretical = theoretical_class(
            intensity, ridge=ridge, sol_us=None if light is None else light.us
        )
    measured: BottleneckClass | None = None
    in_tier: Tier | None = None
    if compute_pct is not None and memory_pct is not None:
        measured = measured_class(compute_pct, memory_pct=memory_pct)
        in_tier = tier(compute_pct, memory_pct=memory_pct)
    bottleneck, confidence = agreed_class(theoretical, measured)
    return Roofline(
        flops=work.flops,
        matrix_flops=sum(flops for _, flops in work.matrix_flops),
        bytes=work.bytes,
        unfused_bytes=work.unfused_bytes,
        precision=work.precision,
        intensity=intensity,
        ridge=ridge,
        theoretical=theoretical,
        measured=measured,
        bottleneck=bottleneck,
        confidence=confidence,
        tier=in_tier,
        sol_us=None if light is None else light.us,
        reachable_us=None if reachable is None else reachable.us,
    )


_DIRECTIONS: dict[tuple[BottleneckClass | None, BottleneckClass | None], str] = {
    ("memory", "compute"): (
        "Memory-bound in theory, compute-bound as measured: instructions that the work does not "
        "need, or mathematics that is not fused."
    ),
    ("compute", "memory"): (
        "Compute-bound in theory, memory-bound as measured: intermediates go through DRAM; fuse."
    ),
    ("memory", "latency"): (
        "Memory-bound in theory, but neither pipe is busy: too little in flight, or too small a "
        "grid."
    ),
    ("compute", "latency"): (
        "Compute-bound in theory, but neither pipe is busy: the pipes are starved."
    ),
}
"""(theoretical, measured) to what it says of the reference."""
