"""A problem's reference held against the kernels that it was cut from, on what they were given.

Source: KernelOPT App. B, Table 3: synthesis is validated at 1e-4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kopt.actors.compiled.fragments import Fragment, NotCut
from kopt.actors.compiled.shims import Seen
from kopt.actors.rewriter.reference import first_line

SYNTHESIS_TOLERANCE = 1e-4
"""Greatest difference of a reference from the kernels, over the scale of the result."""
SYNTHESIS_TOLERANCE_HALF = 2e-2
"""The same where a result has half precision: one unit in its last place is more than 1e-4."""


def tried(source: str, fragment: Fragment, seen: Sequence[Seen]) -> float:
    """Return the greatest difference of a problem's reference from the kernels.

    Raises:
        NotCut: it does not run, or it is not what the kernels compute.
    """
    names: dict[str, Any] = {}
    worst = 0.0
    try:
        exec(compile(source, f"<{fragment.group.name}>", "exec"), names)
        with torch.no_grad():
            for values in seen:
                made = names["Model"]()(*(values.read[each] for each in fragment.inputs))
                made = made if isinstance(made, tuple) else (made,)
                for result, value in zip(made, fragment.group.results, strict=True):
                    worst = max(worst, _difference(result, values.written[value], value))
    except NotCut:
        raise
    except Exception as error:
        raise NotCut(f"its reference does not run: {first_line(error)}") from error
    return worst


def _difference(result: torch.Tensor, expected: torch.Tensor, value: str) -> float:
    if result.shape != expected.shape or result.dtype != expected.dtype:
        raise NotCut(
            f"its reference gives {value} as {result.dtype}{tuple(result.shape)}, the kernel as "
            f"{expected.dtype}{tuple(expected.shape)}"
        )
    if not expected.numel():
        return 0.0
    exact, other = expected.double(), result.double()
    unequal = ~((exact == other) | (exact.isnan() & other.isnan()))
    if not bool(unequal.any()):
        return 0.0
    if not expected.is_floating_point():
        raise NotCut(f"its reference disagrees with the kernel on {value}")
    scale = float(exact[exact.isfinite()].abs().max()) if bool(exact.isfinite().any()) else 1.0
    found = float((exact - other)[unequal].abs().max()) / max(scale, 1e-12)
    half = expected.dtype in (torch.float16, torch.bfloat16)
    if not found <= (SYNTHESIS_TOLERANCE_HALF if half else SYNTHESIS_TOLERANCE):
        raise NotCut(f"its reference disagrees with the kernel on {value} by {found:.1e}")
    return found
