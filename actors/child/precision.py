"""Values in double precision."""

from __future__ import annotations

import torch


def in_float64(value: object) -> object:
    """Return a value with its floating-point tensors, in lists and tuples too, in float64."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    if isinstance(value, list | tuple):
        return type(value)(in_float64(each) for each in value)
    return value
