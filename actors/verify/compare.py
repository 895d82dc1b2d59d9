"""Comparison of outputs with the reference's: chunked, for every dtype, with a clear line.

Source: DESIGN §5.3; KernelOPT App. B; exploits F2, F5, F6, F12 and §E4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from kopt.actors.verify.floats import compare_floats, describe, numeric_error
from kopt.actors.verify.index_ties import flipped_like_reference, tied
from kopt.actors.verify.measure import count_unequal, first_where, measure
from kopt.actors.verify.trees import flatten, structure_failure
from kopt.ladder import DEGENERATE_ERROR, DEGENERATE_RTOL, RHO_LIMIT, Distances, Ladder
from kopt.verdict import NumericError

__all__ = [
    "Comparison",
    "compare_outputs",
    "constant_output",
    "distances",
    "flatten",
    "structure_failure",
    "worst",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What comparing a call's outputs gave."""

    failure: str | None
    """One line for Incorrect.detail, with the first wrong element; None where all is right."""
    error: NumericError
    """Worst over all output tensors."""


def distances(
    candidate: torch.Tensor, *, reference: torch.Tensor, ref64: torch.Tensor, rtol: float
) -> Distances:
    """Measure one output tensor in float64, in chunks whose temporaries stay below 64 MiB.

    Args:
        candidate: the candidate's output.
        reference: the reference's at the problem's own precision; same shape.
        ref64: the reference's in float64 (or its own precision where that failed); same shape.
        rtol: relative tolerance of the allclose test (`ladder.tolerances`).

    Returns:
        The distances; `candidate` and `excess` are inf where the candidate is not finite.

    Raises:
        ValueError: shapes differ, or a reference is not finite (the caller drops such inputs).
    """
    return measure(candidate, reference=reference, ref64=ref64, rtol=rtol).distances


def compare_outputs(
    candidate: object,
    *,
    reference: object,
    ref64: object,
    ladder: Ladder,
    inputs: Sequence[object] = (),
) -> Comparison:
    """Judge a call's outputs by the ladder.

    Integers and bools must be equal, with two exceptions: indices into one of `inputs` along one
    dimension (argmax, argmin, sort, topk) that hold an equal value there (exploits F5); and,
    where ρ is required, outputs that differ from float64 no more often than ρ allows, which is
    never where the reference agrees with float64. Plain numbers are judged like tensors.

    Args:
        candidate: tensor, or tuple, list or dict of outputs.
        reference: the reference's, at the problem's own precision.
        ref64: the reference's in float64, same structure.
        ladder: the numeric policy.
        inputs: the call's arguments; for index ties alone.

    Raises:
        ValueError: a reference output is not finite, or ref64 has other outputs.
    """
    inf = math.inf
    reason = structure_failure(candidate, reference=reference)
    if reason is not None:
        return Comparison(failure=reason, error=NumericError(max_abs=inf, rel_norm=inf, rho=None))
    theirs, exacts = flatten(reference), flatten(ref64)
    if [path for path, _ in theirs] != [path for path, _ in exacts]:
        raise ValueError("the reference's outputs in float64 have another structure")
    sources = [leaf for _, leaf in flatten(list(inputs)) if isinstance(leaf, torch.Tensor)]
    reasons: list[str] = []
    errors: list[NumericError] = []
    for (path, ours), (_, base), (_, exact) in zip(flatten(candidate), theirs, exacts, strict=True):
        reason, error = _compare_leaf(
            ours, reference=base, ref64=exact, ladder=ladder, inputs=sources
        )
        errors.append(error)
        if reason is not None:
            reasons.append(f"output{path}: {reason}")
    return Comparison(failure=reasons[0] if reasons else None, error=worst(errors))


def _compare_leaf(
    candidate: object,
    *,
    reference: object,
    ref64: object,
    ladder: Ladder,
    inputs: Sequence[torch.Tensor],
) -> tuple[str | None, NumericError]:
    leaves = (_as_tensor(candidate), _as_tensor(reference), _as_tensor(ref64))
    ours, theirs, exact = leaves
    if ours is None or theirs is None or exact is None:
        same = candidate == reference
        error = NumericError(
            max_abs=0.0 if same else math.inf, rel_norm=0.0 if same else math.inf, rho=None
        )
        return (None if same else f"expected {reference!r}, found {candidate!r}"), error
    if theirs.is_floating_point() or theirs.is_complex():
        return compare_floats(ours, reference=theirs, ref64=exact, ladder=ladder)
    return _compare_exact(ours, reference=theirs, ref64=exact, ladder=ladder, inputs=inputs)


def _as_tensor(leaf: object) -> torch.Tensor | None:
    if isinstance(leaf, torch.Tensor):
        return leaf
    if isinstance(leaf, float | complex):
        return torch.tensor(leaf, dtype=torch.complex128 if isinstance(leaf, complex) else None)
    if isinstance(leaf, int):  # bool too
        return torch.tensor(leaf)
    return None


def _compare_exact(
    candidate: torch.Tensor,
    *,
    reference: torch.Tensor,
    ref64: torch.Tensor,
    ladder: Ladder,
    inputs: Sequence[torch.Tensor],
) -> tuple[str | None, NumericError]:
    num_wrong = count_unequal(candidate, right=reference)
    accepted = (
        num_wrong == 0
        or tied(candidate, reference=reference, inputs=inputs)
        or (
            ladder.rho_required
            and flipped_like_reference(candidate, reference=reference, ref64=ref64)
        )
    )
    if accepted:
        return None, NumericError(max_abs=0.0, rel_norm=0.0, rho=None)
    found = measure(candidate, reference=reference, ref64=reference, rtol=0.0)
    where = first_where(torch.ne, candidate, reference)
    reason = "integer and bool outputs must be equal" + describe(where, candidate, reference)
    return reason, replace(numeric_error(found), rho=None)


def worst(errors: Sequence[NumericError]) -> NumericError:
    """Return the worst of each figure; zeros and ρ None for no errors at all."""
    ratios = [error.rho for error in errors if error.rho is not None]
    return NumericError(
        max_abs=max((_or_inf(error.max_abs) for error in errors), default=0.0),
        rel_norm=max((_or_inf(error.rel_norm) for error in errors), default=0.0),
        rho=max(map(_or_inf, ratios), default=None),
    )


def _or_inf(value: float) -> float:
    return math.inf if math.isnan(value) else value


def constant_output(outputs: Sequence[torch.Tensor]) -> bool:
    """Return whether a reference's output does not react to its input: the problem is degenerate.

    Differences below the ladder's own floor (1e-7) are none: zeros would pass there too.

    Args:
        outputs: one output of the reference on different input sets, same shape and weights.
            True where all of them agree to 1e-4 of their scale; for a single one, where its
            elements do. False for none, or where shapes differ.
    """
    shapes = {tuple(output.shape) for output in outputs}
    if len(shapes) != 1 or not outputs[0].numel():
        return False
    first = outputs[0]
    if len(outputs) == 1:
        others = [first.reshape(-1)[0].expand(first.shape)] if first.numel() > 1 else []
    else:
        others = list(outputs[1:])
    for other in others:
        found = measure(other, reference=first, ref64=first, rtol=0.0).distances
        if found.candidate > max(DEGENERATE_RTOL * found.scale, DEGENERATE_ERROR * RHO_LIMIT):
            return False
    return bool(others)
