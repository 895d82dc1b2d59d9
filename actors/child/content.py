"""The content of timed calls on the host: made fresh before each, its output digested after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from kopt.actors.child.digest import digest
from kopt.actors.child.perturb import Perturbation, Turn, apply, place, stretch_of

Undo = Callable[[], object]


class HostContent:
    """Of one block of calls, whose tensors lie in the host's memory."""

    def __init__(self, sets: Mapping[int, Sequence[torch.Tensor]], *, key: int) -> None:
        """Begin a block.

        Args:
            sets: number to the tensors of that input set, unperturbed.
            key: secret that stands for the digest before the first call.
        """
        self._sets = sets
        self._last = key
        self._digests: list[int] = []
        self._undo: dict[int, Undo] = {}

    def refresh(self, turn: Turn) -> None:
        """Make the content of a turn's input set fresh."""
        self._settle(turn.number)
        tensors = self._sets[turn.number]
        stretch = stretch_of(turn, [each.numel() for each in tensors])
        if stretch is None:
            return
        at, source = (place(each, self._last, stretch.room) for each in (turn.at, turn.source))
        change = Perturbation(stretch.leaf, at, source, stretch.length)
        held = apply(tensors, change)
        target = tensors[change.leaf].view(-1)[at : at + change.length]
        self._undo[turn.number] = lambda: target.copy_(held)

    def take(self, tensors: Sequence[torch.Tensor]) -> None:
        """Digest the outputs of the call that was made."""
        self._last = int(digest(tensors))
        self._digests.append(self._last)

    def end(self) -> list[int]:
        """Put every set back to what was drawn; return the digests of all calls."""
        for number in list(self._undo):
            self._settle(number)
        return self._digests

    def _settle(self, number: int) -> None:
        undo = self._undo.pop(number, None)
        if undo is not None:
            undo()
