"""Comparison of outputs with the reference's: chunked, for every dtype, with a clear line.

Source: DESIGN §5.3; KernelOPT App. B; exploits F2, F5, F6, F12 and §E4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kopt.ladder import Distances, Ladder
from kopt.verdict import NumericError


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What comparing a call's outputs gave."""

    failure: str | None
    """One line for Incorrect.detail, with the first wrong element; None where all is right."""
    error: NumericError
    """Worst over all output tensors."""


def flatten(tree: object) -> list[tuple[str, object]]:
    """Return the leaves of an output with their paths, in order.

    A tensor alone has the path ``; others `[0]`, `['mask'][1]`, …. Dicts go by sorted key.
    """
    raise NotImplementedError


def structure_failure(candidate: object, *, reference: object) -> str | None:
    """Return why an output is not of the reference's form, or None.

    Compared are the containers (a list and a tuple are alike), the paths, and for tensors the
    shape, dtype and device kind; the line names the first difference.
    """
    raise NotImplementedError


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
    raise NotImplementedError


def compare_outputs(
    candidate: object,
    *,
    reference: object,
    ref64: object,
    ladder: Ladder,
    inputs: Sequence[object] = (),
) -> Comparison:
    """Judge a call's outputs by the ladder.

    Integers and bools must be equal, except indices that point at an equal value: where an
    integer output indexes one of `inputs` along one dimension (argmax, argmin, sort, topk) and
    both indices hold the same value there, the tie is accepted (exploits F5). Indices into
    values that forward computed first are compared exactly.

    Args:
        candidate: tensor, or tuple, list or dict of outputs.
        reference: the reference's, at the problem's own precision.
        ref64: the reference's in float64, same structure.
        ladder: the numeric policy.
        inputs: the call's arguments; for index ties alone.

    Raises:
        ValueError: a reference output is not finite.
    """
    raise NotImplementedError


def worst(errors: Sequence[NumericError]) -> NumericError:
    """Return the worst of each figure; zeros and ρ None for no errors at all."""
    raise NotImplementedError


def constant_output(outputs: Sequence[torch.Tensor]) -> bool:
    """Return whether a reference's output does not react to its input: the problem is degenerate.

    Args:
        outputs: one output of the reference on different input sets, same shape. True where all
            of them agree to 1e-4 of their scale; for a single one, where its elements do.
    """
    raise NotImplementedError
