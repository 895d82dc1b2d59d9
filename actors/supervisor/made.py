"""A block of timed calls that was made: what the supervisor knows of it without asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from kopt.actors.child.perturb import Perturbation, Turn, perturbation, turns
from kopt.actors.child.tensor_spec import Place
from kopt.actors.devices.pool import kept_pool, swept, wrapped


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
    last: object
    """The last digest, likewise."""
    key: int = 0
    """Secret that stands for the digest before the first call."""
    pool_words: int = 0
    """Of the pool that was swept before each call; 0 for none."""

    def given(
        self,
        call: int,
        *,
        sizes: Mapping[int, Sequence[int]],
        digests: Sequence[int],
        place: Place = "cpu",
    ) -> GivenCall:
        """Return what a call was given, if the digests of the block are these.

        Args:
            call: its position.
            sizes: number of elements of each tensor of the input sets.
            digests: of all calls.
            place: where a pool is swept.
        """
        turn = self._turn(call)
        before = digests[call - 1] if call else self.key
        if self.pool_words:
            before = wrapped(before + swept(kept_pool(self.pool_words, place), before))
        return GivenCall(
            number=turn.number,
            perturbation=perturbation(turn, sizes[turn.number], digest=before),
            seed=self.seed + call,
        )

    def _turn(self, call: int) -> Turn:
        return next(islice(turns(self.numbers, seed=self.seed), call, None))
