"""Input families: the problem's own inputs, redrawn so that a shortcut shows.

A family keeps what the drawn inputs evidently guarantee (a sign, a value set, rows that sum to
one); what it changes is the distribution. Source: exploits §E3; classes 12, 22, 41-44, 46, 48.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

FamilyName = Literal[
    "own", "signed_normal", "shifted_scaled", "heavy_tail", "ties", "unit_interval"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSet:
    """The arguments of one forward call."""

    name: FamilyName
    values: tuple[object, ...]
    """Tensors and plain values, in the order of `get_inputs()`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyPlan:
    """What can be done with a problem's inputs; made once, used for every draw."""

    names: tuple[FamilyName, ...]
    """Families to check, `own` first. Drop one (not `own`) on which the reference raises or is
    not finite, and record it: the problem's contract excludes those values."""
    notes: tuple[str, ...]
    """Assumptions to record as checks: `input 0: lower triangular, only its own values`."""


def plan_families(base: Sequence[object]) -> FamilyPlan:
    """Look at the problem's own inputs and say which families apply.

    Args:
        base: the values of `get_inputs()`, tensors on any one device; lists, tuples and dicts
            of tensors are looked into; other values stay as they are.
    """
    raise NotImplementedError


def make_family(
    base: Sequence[object],
    *,
    plan: FamilyPlan,
    name: FamilyName,
    seed: int,
    into: Sequence[object] | None = None,
) -> InputSet:
    """Draw one input set on the device of the base tensors; the base is not changed.

    Equal arguments give equal values on one device and torch version. `own` copies the base.

    Args:
        base: the values of `get_inputs()` under a secret seed.
        plan: `plan_families` of any draw of the same problem.
        name: one of `plan.names`.
        seed: secret; also draws the family's own parameters (scale, offset, number of outliers).
        into: same structure, shapes and dtypes as the base: filled in place, so that a large
            input needs no second allocation. None allocates.

    Raises:
        ValueError: the name is not in the plan, or `into` does not fit the base.
    """
    raise NotImplementedError


def input_families(base: Sequence[object], *, seed: int) -> list[InputSet]:
    """Return every planned family of small inputs at once; `own` is first and holds the base."""
    raise NotImplementedError


def finite(tensors: Sequence[torch.Tensor]) -> bool:
    """Return whether every value of every tensor is finite; integers and bools always are."""
    raise NotImplementedError
