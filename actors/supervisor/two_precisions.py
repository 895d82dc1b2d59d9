"""Whether a module's float64 form is the same function: another random draw is not."""

from __future__ import annotations

import torch

from kopt.actors.verify.compare import flatten
from kopt.actors.verify.measure import measure

SAME_SHARE = {torch.float16: 0.1, torch.bfloat16: 0.1}
"""Distance of two precisions of one function, as a share of the norm: rounding stays far below,
another random draw far above. 0.02 for other dtypes."""


def same_function(outputs: object, outputs64: object) -> bool:
    """Whether outputs of two precisions can be one function's."""
    for (_, leaf), (_, leaf64) in zip(flatten(outputs), flatten(outputs64), strict=False):
        if not (isinstance(leaf, torch.Tensor) and isinstance(leaf64, torch.Tensor)):
            continue
        if leaf.shape != leaf64.shape:
            return False
        if not (leaf.is_floating_point() and leaf.numel()):
            continue
        try:
            found = measure(leaf, reference=leaf, ref64=leaf64, rtol=0.0)
        except ValueError:  # not finite: such a set is left out
            continue
        if found.reference_norm > SAME_SHARE.get(leaf.dtype, 0.02) * found.scale_norm + 1e-6:
            return False
    return True
