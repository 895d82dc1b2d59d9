"""Floating outputs: one tensor judged by the ladder, with its first wrong element.

Source: DESIGN §5.3; KernelOPT App. B; exploits F1, F2, F11 and §E4.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from kopt.actors.verify.measure import Measurement, as_float64, first_where, measure
from kopt.ladder import (
    DEGENERATE_ERROR,
    DEGENERATE_RTOL,
    RHO_LIMIT,
    Distances,
    Ladder,
    failure,
    rho,
    tolerances,
)
from kopt.verdict import NumericError

JUMP_SHARE = 1e-2
"""Where the reference's own error is above this share of its scale, it jumped (a rounding that
crossed a threshold): the largest error then excuses anything, and the norms decide as well."""
HALVES = (torch.float16, torch.bfloat16)
FEW_ELEMENTS = 64
"""Fewer outputs than this say little of the reference's error: one of them is right by luck."""
LUCK_SINGLE, LUCK_HALF = 4.0, 0.25
"""The least error such a reference is taken to have, in units of rounding (eps / 2) of its scale:
a sum has a few, and a half-precision result was rounded once."""


def compare_floats(
    candidate: torch.Tensor, *, reference: torch.Tensor, ref64: torch.Tensor, ladder: Ladder
) -> tuple[str | None, NumericError]:
    """Judge one floating (or complex) tensor; returns (why not, or None; its error).

    Raises:
        ValueError: a reference is not finite.
    """
    half = reference.dtype in HALVES
    lacks_oracle = ladder.rho_required and ref64.dtype not in (torch.float64, torch.complex128)
    if lacks_oracle:
        ladder = _without_oracle(ladder, reference.dtype)
    _, rtol = tolerances(ladder, half=half)
    found = measure(candidate, reference=reference, ref64=ref64, rtol=rtol)
    found = replace(found, distances=_without_luck(found.distances, reference))
    reason = failure(found.distances, ladder, half=half)
    if reason is not None:
        reason += _first_wrong(
            candidate, reference, ref64, found=found.distances, ladder=ladder, half=half
        )
    elif ladder.rho_required:
        reason = _norm_failure(found)
    elif lacks_oracle:
        reason = _scale_failure(found, rtol=rtol, count=reference.numel())
    return reason, numeric_error(found)


def _without_oracle(ladder: Ladder, dtype: torch.dtype) -> Ladder:
    """Return the ladder for a reference that has no float64 form: allclose at its precision.

    Besides it the norms must agree (`_scale_failure`).
    """
    room = 4.0 * torch.finfo(dtype).eps
    return replace(
        ladder,
        rho_required=False,
        atol=max(ladder.atol, room),
        rtol=max(ladder.rtol, room),
    )


def _without_luck(found: Distances, reference: torch.Tensor) -> Distances:
    """Return the distances with the error that a reference of few elements can be relied on for.

    The ratio of two equally good errors of one number exceeds 10 in one case of sixteen: an
    honest loss would fail one input set or another. Exact references stay as they are.
    """
    if reference.numel() >= FEW_ELEMENTS or found.reference < DEGENERATE_ERROR:
        return found
    luck = LUCK_HALF if reference.dtype in HALVES else LUCK_SINGLE
    rounding = 0.5 * torch.finfo(reference.dtype).eps * found.scale
    return replace(found, reference=max(found.reference, luck * rounding))


def _norm_failure(found: Measurement) -> str | None:
    """Return why the norms do not pass, where the largest error says too little."""
    if found.distances.reference <= JUMP_SHARE * found.distances.scale:
        return None
    if found.candidate_norm <= RHO_LIMIT * found.reference_norm:
        return None
    return (
        f"error norm {found.candidate_norm:.3g} against float64 is more than {RHO_LIMIT:g} times "
        f"the reference's own {found.reference_norm:.3g}"
    )


def _scale_failure(found: Measurement, *, rtol: float, count: int) -> str | None:
    """Return why the norms differ, where outputs below atol would pass as zeros (exploits 41)."""
    limit = max(rtol * found.scale_norm, DEGENERATE_ERROR * RHO_LIMIT * math.sqrt(count))
    if found.candidate_norm <= limit:
        return None
    return (
        f"norm of candidate - reference is {found.candidate_norm:.3g}, the reference's own "
        f"{found.scale_norm:.3g}; at most {limit:.3g} passes"
    )


def _first_wrong(
    candidate: torch.Tensor,
    reference: torch.Tensor,
    ref64: torch.Tensor,
    *,
    found: Distances,
    ladder: Ladder,
    half: bool,
) -> str:
    """Return `; first at (0, 3): expected 1.5, found 2 (7 of 64 wrong)`."""
    atol, rtol = tolerances(ladder, half=half)
    limit = RHO_LIMIT * found.reference
    if rho(found) is None:
        limit = max(DEGENERATE_RTOL * found.scale, DEGENERATE_ERROR * RHO_LIMIT)

    def wrong(ours: torch.Tensor, base: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
        if ladder.rho_required:
            right = (ours - exact).abs() <= limit
        else:
            right = (ours - base).abs() <= atol + rtol * base.abs()
        return ~right  # a NaN is not right

    def pieces_wrong(*pieces: torch.Tensor) -> torch.Tensor:
        mask = wrong(*(as_float64(piece) for piece in pieces))
        return mask.view(-1, 2).any(dim=1) if pieces[0].is_complex() else mask

    return describe(first_where(pieces_wrong, candidate, reference, ref64), candidate, reference)


def describe(
    where: tuple[tuple[int, ...], int] | None, candidate: torch.Tensor, reference: torch.Tensor
) -> str:
    """Return `; first at (0, 3): expected 1.5, found 2 (7 of 64 wrong)`, or empty for None."""
    if where is None:
        return ""
    index, count = where
    position = ", ".join(map(str, index))
    expected, found = reference[index].item(), candidate[index].item()
    return (
        f"; first at ({position}): expected {_number(expected)}, found {_number(found)} "
        f"({count} of {reference.numel()} wrong)"
    )


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def numeric_error(found: Measurement) -> NumericError:
    """Return a measurement as a verdict's error."""
    if found.scale_norm > 0.0:
        relative = found.candidate_norm / found.scale_norm
    else:
        relative = 0.0 if found.candidate_norm == 0.0 else math.inf
    return NumericError(
        max_abs=found.distances.candidate,
        rel_norm=math.inf if math.isnan(relative) else relative,
        rho=rho(found.distances),
    )
