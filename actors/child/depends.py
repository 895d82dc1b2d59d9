"""Which inputs of the reference matter everywhere: single elements changed, outputs compared.

For children of trusted code alone.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import torch

from kopt.actors.child.digest import digest, tensors_in
from kopt.speed_of_light import TRIALS

LIMIT_S = 0.5
"""For one problem; inputs that were not got to by then are not said to matter."""


def inputs_that_matter(
    run: Callable[[], object], tensors: Sequence[torch.Tensor], *, seed: int
) -> list[bool]:
    """Return for each input tensor whether every one of TRIALS single elements changes the output.

    An element is replaced by the tensor's greatest value, its least, or another element: all are
    values that the problem has. An input of which rounding hides a change is not said to matter.

    Args:
        run: calls the module on arguments that hold the tensors, equally seeded each time.
        tensors: of the arguments, dense; they are as before afterwards.
        seed: of the elements that are tried.
    """
    rng = random.Random(seed)
    deadline_s = time.monotonic() + LIMIT_S
    before = _digest(run)

    def matters(flat: torch.Tensor) -> bool:
        if time.monotonic() > deadline_s:
            return False
        at = rng.randrange(flat.numel())
        held = flat[at].clone()
        others = (flat.max(), flat.min(), flat[rng.randrange(flat.numel())].clone())
        try:
            for other in others:
                flat[at] = other
                if _digest(run) != before:
                    return True
        finally:
            flat[at] = held
        return False

    return [
        tensor.numel() > 1
        and not tensor.is_complex()
        and tensor.element_size() > 1
        and all(matters(tensor.view(-1)) for _ in range(TRIALS))
        for tensor in tensors
    ]


def _digest(run: Callable[[], object]) -> int:
    return int(digest(tensors_in(run())))
