"""Ladders: the numeric policy in force, from the TF32 flags to what passes (DESIGN §5.3).

A ladder pins the matmul and cuDNN TF32 flags for reference, baseline and candidate alike; every
result names its ladder, and reports never mix them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

LadderName = Literal["strict", "tf32", "loose", "kernelbench"]
LADDER_NAMES: tuple[LadderName, ...] = get_args(LadderName)

RHO_LIMIT = 10.0
"""Largest d_candidate / d_reference that passes (KernelOPT App. B)."""
DEGENERATE_ERROR = 1e-8
"""Below this error of the reference itself, ρ says nothing and the scale decides (App. B)."""
DEGENERATE_RTOL = 1e-4
"""In the degenerate case: d_candidate ≤ 1e-4 · max |ref64| (App. B)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """One numeric policy."""

    name: LadderName
    matmul_tf32: bool
    """torch.backends.cuda.matmul.allow_tf32, for all three roles."""
    cudnn_tf32: bool
    """torch.backends.cudnn.allow_tf32, for all three roles."""
    atol: float
    """Absolute tolerance of the allclose test against the reference at its own precision."""
    rtol: float
    """Relative tolerance of the same."""
    rho_required: bool
    """Whether ρ ≤ 10 against float64 must hold besides allclose or in its place."""
    absolute_bound: bool
    """KernelOPT's way out: d ≤ max(5e-3, 1e-3·‖ref‖∞) passes even if ρ does not."""


LADDERS: dict[LadderName, Ladder] = {
    "strict": Ladder(
        name="strict",
        matmul_tf32=False,
        cudnn_tf32=True,  # torch's own defaults
        atol=1e-3,
        rtol=1e-3,
        rho_required=True,
        absolute_bound=False,
    ),
    "tf32": Ladder(
        name="tf32",
        matmul_tf32=True,
        cudnn_tf32=True,
        atol=1e-3,
        rtol=1e-3,
        rho_required=True,
        absolute_bound=True,
    ),
    "loose": Ladder(
        name="loose",
        matmul_tf32=False,
        cudnn_tf32=True,
        atol=1e-2,
        rtol=1e-3,
        rho_required=False,
        absolute_bound=True,
    ),
    "kernelbench": Ladder(
        name="kernelbench",
        matmul_tf32=False,
        cudnn_tf32=True,
        atol=1e-4,
        rtol=1e-4,
        rho_required=False,
        absolute_bound=False,
    ),
}
"""strict: torch's defaults; tf32: both flags on; loose: KernelPro's allclose(1e-2, 1e-3);
kernelbench: its fp32 tolerances, for re-scoring (half precision: 1e-2, by `tolerances`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances:
    """What comparing one output tensor gave; every figure is over all of its elements."""

    candidate: float
    """max |candidate - ref64|."""
    reference: float
    """max |reference - ref64|: the honest error at the problem's own precision."""
    scale: float
    """max |ref64|."""
    excess: float
    """max (|candidate - reference| - rtol·|reference|): allclose holds where it is ≤ atol."""


def tolerances(ladder: Ladder, *, half: bool) -> tuple[float, float]:
    """Return (atol, rtol) for a problem; half-precision outputs get 1e-2 on `kernelbench`."""
    if half and ladder.name == "kernelbench":
        return 1e-2, 1e-2
    return ladder.atol, ladder.rtol


def rho(distances: Distances) -> float | None:
    """Return ρ = d_candidate / d_reference, or None in the degenerate case (App. B)."""
    if distances.reference < DEGENERATE_ERROR:
        return None
    return distances.candidate / distances.reference


def failure(distances: Distances, ladder: Ladder, *, half: bool = False) -> str | None:
    """Return why these distances do not pass the ladder, or None if they do.

    With ρ required, ρ ≤ 10 (or the degenerate rule) decides alone: a candidate that is as exact
    as the reference must not fail because both differ from each other (exploits F2, F11).

    Source: KernelOPT App. B; DESIGN §5.3.
    """
    atol, rtol = tolerances(ladder, half=half)
    if not math.isfinite(distances.candidate):
        return "the output holds values that are not finite where the reference's are"
    if ladder.rho_required:
        reason = _rho_failure(distances)
    elif distances.excess > atol:
        reason = (
            f"|candidate - reference| exceeds {atol:g} + {rtol:g}*|reference| "
            f"by {distances.excess - atol:.3g}"
        )
    else:
        reason = None
    if reason is not None and ladder.absolute_bound:
        bound = max(5e-3, 1e-3 * distances.scale)
        if distances.candidate <= bound:
            return None
    return reason


def _rho_failure(distances: Distances) -> str | None:
    ratio = rho(distances)
    if ratio is None:
        limit = max(DEGENERATE_RTOL * distances.scale, RHO_LIMIT * distances.reference)
        if distances.candidate <= limit:
            return None
        return f"error {distances.candidate:.3g} against float64 is above {limit:.3g}"
    if ratio <= RHO_LIMIT:
        return None
    return (
        f"error {distances.candidate:.3g} against float64 is {ratio:.3g} times the reference's own "
        f"{distances.reference:.3g}; at most {RHO_LIMIT:g} times passes"
    )
