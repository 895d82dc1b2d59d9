"""Fresh content for every timed call: a stretch of one input is overwritten by another stretch.

Which stretch depends on a secret that comes with the block, and on the digest of the output of the
call before (chain.py): what a call is given is known once the one before it is done, and not
earlier. The values stay those of the input (labels stay labels, probabilities lie where they lay).
Child and supervisor draw the same, so that the supervisor knows what a call was given.
Source: exploits 18-23, §E2.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

SHARE = 256
"""One element in this many is overwritten, at least one."""
MAX_ELEMENTS = 65_536
MODULUS = (1 << 31) - 1
"""A prime: products of two numbers below it are exact in 64 bits, on every device."""


class Turn(NamedTuple):
    """What a block's secret says of one of its calls."""

    number: int
    """Input set."""
    leaf_share: float
    """Which of its tensors is changed, between 0 and 1."""
    at: tuple[int, int]
    """Place of the change: `(digest·a + b) mod MODULUS`, a and b."""
    source: tuple[int, int]
    """Where its values come from, likewise."""


class Stretch(NamedTuple):
    """Which tensor a turn changes, and how much of it."""

    leaf: int
    length: int
    room: int
    """Places at which a stretch of this length can begin."""


class Perturbation(NamedTuple):
    """Elements [at, at+length) of one tensor become copies of [source, source+length)."""

    leaf: int
    at: int
    source: int
    length: int


def turns(numbers: Sequence[int], *, seed: int) -> Iterator[Turn]:
    """Draw the turns of a block of calls, without end.

    Args:
        numbers: of the input sets that are timed.
        seed: secret of the block.
    """
    rng = random.Random(seed)
    while True:
        number = numbers[int(rng.random() * len(numbers))]
        share = rng.random()
        a, b, c, d = (1 + int(rng.random() * (MODULUS - 1)) for _ in range(4))
        yield Turn(number, share, (a, b), (c, d))


def stretch_of(turn: Turn, sizes: Sequence[int]) -> Stretch | None:
    """Return what a turn changes; None where there is nothing to change.

    Args:
        turn: of the call.
        sizes: number of elements of each tensor of its input set.
    """
    leaves = [leaf for leaf, size in enumerate(sizes) if size > 1]
    if not leaves:
        return None
    leaf = leaves[int(turn.leaf_share * len(leaves))]
    length = max(1, min(sizes[leaf] // SHARE, MAX_ELEMENTS))
    return Stretch(leaf, length, sizes[leaf] - length + 1)


def place(factors: tuple[int, int], digest: int, room: int) -> int:
    """Return where a stretch begins, by the digest of the output before."""
    return (digest % MODULUS * factors[0] + factors[1]) % MODULUS % room


def perturbation(turn: Turn, sizes: Sequence[int], *, digest: int) -> Perturbation | None:
    """Return how a call's content differs from what was drawn; None where it does not.

    Args:
        turn: of the call.
        sizes: number of elements of each tensor of its input set.
        digest: of the output of the call before, the key for the first of a block; with a pool's
            sum where one is swept.
    """
    stretch = stretch_of(turn, sizes)
    if stretch is None:
        return None
    at, source = (place(each, digest, stretch.room) for each in (turn.at, turn.source))
    return Perturbation(stretch.leaf, at, source, stretch.length)


def apply(tensors: Sequence[torch.Tensor], change: Perturbation) -> torch.Tensor:
    """Overwrite the stretch, and return what it held."""
    flat = tensors[change.leaf].view(-1)
    target = flat[change.at : change.at + change.length]
    held = target.clone()
    target.copy_(flat[change.source : change.source + change.length].clone())
    return held
