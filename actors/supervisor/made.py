"""A block of timed calls that was made: what the supervisor knows of it without asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from kopt.actors.child.perturb import Perturbation, perturbation, turns


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenCall:
    """What one timed call was given: its output can be verified."""

    number: int
    """Input set."""
    perturbation: Perturbation | None
    """How its content differed from what was drawn."""
    seed: int
    """Set before it, for modules that draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The last block, as the supervisor knows it."""

    numbers: tuple[int, ...]
    """Input sets that it was drawn from."""
    seed: int
    calls: int
    commitment: str
    """Hash of the digests, as the child sent it with the block's time; untrusted."""

    def given(
        self, call: int, *, sizes: Mapping[int, Sequence[int]], digests: Sequence[int]
    ) -> GivenCall:
        """Return what a call was given, if the digests of the block are these."""
        turn = next(islice(turns(self.numbers, seed=self.seed), call, None))
        before = digests[call - 1] if call else 0
        return GivenCall(
            number=turn.number,
            perturbation=perturbation(turn, sizes[turn.number], digest=before),
            seed=self.seed + call,
        )
