"""Fresh content for every timed call: a stretch of one input is overwritten by another stretch.

A candidate that remembers answers by address, or by a few elements, then gives a stale one, and
the output of a timed call is verified. The values stay those of the input (labels stay labels,
probabilities lie where they lay). Child and supervisor draw the same sequence from a seed, so that
the supervisor knows what the last call was given without asking. Source: exploits 18-23, §E2.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

SHARE = 256
"""One element in this many is overwritten, at least one."""
MAX_ELEMENTS = 65_536


class Perturbation(NamedTuple):
    """Elements [at, at+length) of one tensor become copies of [source, source+length)."""

    leaf: int
    at: int
    source: int
    length: int


def perturbations(sizes: Sequence[int], *, seed: int) -> Iterator[Perturbation | None]:
    """Draw a perturbation for each call; None where there is nothing to perturb.

    Args:
        sizes: number of elements of each tensor of the input set.
        seed: secret of the block of calls.
    """
    rng = random.Random(seed)
    leaves = [leaf for leaf, size in enumerate(sizes) if size > 1]
    while True:
        if not leaves:
            yield None
            continue
        leaf = leaves[int(rng.random() * len(leaves))]
        size = sizes[leaf]
        count = max(1, min(size // SHARE, MAX_ELEMENTS))
        room = size - count + 1
        yield Perturbation(leaf, int(rng.random() * room), int(rng.random() * room), count)


def apply(tensors: Sequence[torch.Tensor], change: Perturbation) -> torch.Tensor:
    """Overwrite the stretch, and return what it held."""
    flat = tensors[change.leaf].view(-1)
    target = flat[change.at : change.at + change.length]
    held = target.clone()
    target.copy_(flat[change.source : change.source + change.length].clone())
    return held


def restore(tensors: Sequence[torch.Tensor], change: Perturbation, held: torch.Tensor) -> None:
    """Put back what `apply` returned."""
    tensors[change.leaf].view(-1)[change.at : change.at + change.length].copy_(held)


class Perturber:
    """Perturbs input sets call by call: at most one stretch of a set is not as drawn."""

    def __init__(self, sets: dict[int, list[torch.Tensor]], *, seed: int) -> None:
        """Begin a block of calls.

        Args:
            sets: number to the tensors of that input set, unperturbed.
            seed: of the block.
        """
        self._sets = sets
        self._draws = {
            number: perturbations([each.numel() for each in tensors], seed=seed + number)
            for number, tensors in sets.items()
        }
        self._held: dict[int, tuple[Perturbation, torch.Tensor]] = {}

    def before_call(self, number: int) -> None:
        """Make the content of a set fresh."""
        self.settle(number)
        change = next(self._draws[number])
        if change is not None:
            self._held[number] = (change, apply(self._sets[number], change))

    def settle(self, number: int) -> None:
        """Put a set's content back to what was drawn."""
        held = self._held.pop(number, None)
        if held is not None:
            restore(self._sets[number], *held)
