"""Weights: a second state that no default hides, and whose tensors belong to whose.

Source: exploits classes 17, 44, F3 and §E9; KernelBench notes C4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch


class StateEntry(NamedTuple):
    """One tensor of a module's state_dict, described."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """Such as `float32`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMatch:
    """Which reference tensor each tensor of the candidate takes its values from."""

    sources: dict[str, str] | None
    """Candidate's name to reference's name; None where they cannot be matched."""
    reason: str = ""
    """One line: why not; or, where matched, how (`by name`, `by order`) and what is left over."""


def randomise_parameters(
    state: Mapping[str, torch.Tensor],
    *,
    seed: int,
    parameters: Collection[str] | None = None,
) -> dict[str, torch.Tensor]:
    """Return a second state: same names, shapes, dtypes and devices, other values.

    Constant ones (norm weights) become ±U(0.5, 1.5), constant zeros (biases) small normals,
    running means normal, running variances U(0.5, 1.5); other floating tensors are redrawn
    normal with the mean and deviation they had, keeping a one-sided sign. Integers, bools,
    counters, masks, tables and tensors that are not finite are kept. Tensors that were equal
    (tied weights) stay equal.

    Args:
        state: the reference's state_dict; not changed.
        seed: secret.
        parameters: names that are parameters; the other floating tensors are buffers, of which
            only running statistics change. None: judged by name and content.
    """
    raise NotImplementedError


def match_state(reference: Sequence[StateEntry], *, candidate: Sequence[StateEntry]) -> StateMatch:
    """Match the tensors of a candidate to the reference's.

    By name first; what is left over by order where the sequences of shapes and dtypes agree, or
    by shape where every shape is unique. A candidate may lack tensors (dead ones) and may have
    more (its own buffers); a name with another shape or dtype, or leftovers that fit neither
    way, is no match.
    """
    raise NotImplementedError
