"""Which winners are put into a model, what is tried after a refusal, and what became of it.

Source: KernelOPT §4.4 (at most two targeted retries, then the baseline is kept); DESIGN §8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kopt.compiled.export import Winner
from kopt.compiled.record import Apart, Cause, SubKernel

ModelOutcome = Literal["optimized", "matched", "synthesis_failed", "fallback"]

SLOWER_MARGIN = 1.03
"""γ of gate 4: a stitched model may take so much longer than the baseline (KernelOPT Eq. 5)."""
OPTIMIZED_SPEEDUP = 1.01
"""Above this, with the interval above 1, a model is `optimized` (DESIGN §8)."""
DOMINANT_SHARE = 0.5
"""Of the time in libraries, above which a model that gains nothing is theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The fastest correct program for a problem."""

    source: str
    speedup: float
    speedup_low: float
    """Lower end of its interval."""
    path: str
    """Its file, relative to the run folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A group that got a faster program."""

    subkernel: str
    problem: str
    places: tuple[int, ...]
    speedup: float
    gain: float
    """Share of the model's time that it should save: share · (1 - 1/speedup)."""
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One stitched model, and what gates 3 and 4 said of it."""

    replaced: tuple[str, ...]
    """Names of groups."""
    passed: bool
    cause: Cause
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """What became of a compiled model."""

    model: str
    outcome: ModelOutcome
    strategist: str = ""
    """What became of its answer on which launches are fused; empty where it was not asked."""
    decisions: tuple[str, ...] = ()
    """Those on groups that were the model's, each in a line."""
    cause: Cause = ""
    reason: str = ""
    speedup: float | None = None
    """Over the compiled baseline; None where the baseline was kept."""
    speedup_ci: tuple[float, float] | None = None
    baseline: str | None = None
    baseline_us: float | None = None
    time_us: float | None = None
    eager_us: float | None = None
    compile_us: float | None = None
    placed: tuple[Placed, ...] = ()
    """What is in the stitched file."""
    attempts: tuple[Attempt, ...] = ()
    path: str = ""
    """Of the stitched file, relative to the run folder; empty where the baseline was kept."""
    kernel_share: float = 0.0
    """Share of the model's time in generated kernels."""
    evaluation: Mapping[str, object] = field(default_factory=dict)
    """The eval JSON of the last stitched model that was judged."""


def placed_in(apart: Apart, found: Mapping[str, Found]) -> list[tuple[Placed, SubKernel]]:
    """Return the groups that have a program which is faster beyond doubt, by falling gain.

    Args:
        apart: the model.
        found: by the problem's name.
    """
    chosen = []
    for sub in apart.subkernels:
        best = found.get(sub.problem)
        if best is None or best.speedup_low <= 1.0:
            continue
        gain = sub.share * (1.0 - 1.0 / best.speedup)
        placed = Placed(
            subkernel=sub.name,
            problem=sub.problem,
            places=sub.group.places,
            speedup=best.speedup,
            gain=gain,
            path=best.path,
        )
        chosen.append((placed, sub))
    return sorted(chosen, key=lambda each: -each[0].gain)


def attempts_of(
    placed: Sequence[tuple[Placed, SubKernel]], *, retries: int
) -> list[list[tuple[Placed, SubKernel]]]:
    """Return what is stitched one after the other until one passes.

    All winners; then the half with the greatest gains; then half of those, down to one.
    """
    if not placed:
        return []
    tries = [list(placed)]
    while len(tries) <= retries and len(tries[-1]) > 1:
        tries.append(tries[-1][: len(tries[-1]) // 2])
    return tries


def winners_of(
    placed: Sequence[tuple[Placed, SubKernel]], found: Mapping[str, Found]
) -> list[Winner]:
    """Return what the export takes."""
    return [
        Winner(
            group=sub.group,
            inputs=sub.inputs,
            source=found[sub.problem].source,
            name=f"{each.subkernel}: {each.speedup:.2f}x on its own",
        )
        for each, sub in placed
    ]


def nothing_gained(apart: Apart) -> tuple[Cause, str]:
    """Return the cause and a line for a model of which no sub-kernel became faster."""
    in_kernels = sum(kernel.share for kernel in apart.kernels)
    names = [call.name for call in apart.library_calls]
    products = sum(name.endswith(("mm", "addmm", "bmm", "baddbmm", "linear")) for name in names)
    convolutions = sum("conv" in name for name in names)
    line = f"libraries take {max(0.0, 1.0 - in_kernels):.0%} of its time"
    if in_kernels < 1.0 - DOMINANT_SHARE and names:
        if convolutions and convolutions >= products:
            return "conv_dominant", f"no sub-kernel became faster; {line}, mostly convolutions"
        if products:
            return "gemm_dominant", f"no sub-kernel became faster; {line}, mostly products"
    return "no_improvement", f"no sub-kernel became faster beyond doubt; {line}"


def outcome_of(
    speedup: float, low: float, *, has_gate: bool = True
) -> tuple[ModelOutcome, Cause] | None:
    """Return what a correct stitched model is, and why it is no better; None where gate 4 refuses.

    Args:
        speedup: over the compiled baseline.
        low: lower end of its interval.
        has_gate: whether there is a gate 4; without it (KernelOPT's ablation C3) a model that is
            right takes the baseline's place however slow it is.
    """
    if speedup < 1.0 / SLOWER_MARGIN:
        return None if has_gate else ("matched", "performance")
    if speedup > OPTIMIZED_SPEEDUP and low > 1.0:
        return "optimized", ""
    return "matched", "no_improvement"
