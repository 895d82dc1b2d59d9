"""The chain of a block of timed calls: what each is given depends on what the one before gave.

Between two calls the output of the first is digested, and its digest decides the content of the
second's input. So the calls of a block can only be made one after the other, each of them whole:
work put off, done ahead or done for several calls together has no input to start from. A hash of
all digests goes back with the block's time, and binds the child to outputs that it may be asked
for later.

On a GPU everything here is queued behind the call, without waiting for it; an output that is not
there when the call's own stream reaches its end is digested as it is.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from itertools import islice

import torch

from kopt.actors.child.digest import digest, tensors_in
from kopt.actors.child.perturb import MODULUS, Perturbation, Turn, apply, place, stretch_of, turns

Undo = Callable[[], object]


class Chain:
    """One block of calls in the child."""

    def __init__(
        self, sets: dict[int, list[torch.Tensor]], *, seed: int, count: int, copies: bool = False
    ) -> None:
        """Begin a block.

        Args:
            sets: number to the tensors of that input set, unperturbed.
            seed: secret of the block, known from now on.
            count: calls of the block.
            copies: keep copies of the outputs, for a module whose outputs may be views of inputs.
        """
        self._copies = copies
        self._sets = sets
        self._sizes = {
            number: [each.numel() for each in tensors] for number, tensors in sets.items()
        }
        self.turns: list[Turn] = list(islice(turns(sorted(sets), seed=seed), count))
        """Of the calls, in order."""
        self.outputs: list[object] = []
        """Of the calls that were made, all kept."""
        self._digests: list[torch.Tensor] = []
        self._undo: dict[int, Undo] = {}

    def before_call(self, position: int) -> None:
        """Make the content of the call's input set fresh."""
        turn = self.turns[position]
        self.settle(turn.number)
        stretch = stretch_of(turn, self._sizes[turn.number])
        if stretch is None:
            return
        tensors = self._sets[turn.number]
        last = self._digests[-1] if self._digests else None
        if last is None or last.device.type == "cpu":
            value = 0 if last is None else int(last)
            at, source = (place(each, value, stretch.room) for each in (turn.at, turn.source))
            change = Perturbation(stretch.leaf, at, source, stretch.length)
            held = apply(tensors, change)
            target = tensors[change.leaf].view(-1)[at : at + change.length]
            self._undo[turn.number] = lambda: target.copy_(held)
        else:
            flat = _bits(tensors[stretch.leaf])
            self._undo[turn.number] = _apply_queued(flat, last, turn, stretch.length, stretch.room)

    def after_call(self, out: object) -> None:
        """Keep a call's outputs and digest them."""
        self._digests.append(digest(tensors_in(out)))
        self.outputs.append(_copied(out) if self._copies else out)

    def settle(self, number: int) -> None:
        """Put a set's content back to what was drawn."""
        undo = self._undo.pop(number, None)
        if undo is not None:
            undo()

    def end(self) -> list[int]:
        """Put every set back, and return the digests of all calls; waits for the device."""
        for number in list(self._undo):
            self.settle(number)
        if not self._digests:
            return []
        host = self._digests[0].device
        return [int(each) for each in torch.stack([d.to(host) for d in self._digests]).tolist()]


def commitment(digests: Sequence[int]) -> str:
    """Return the hash that stands for the digests of a block."""
    return hashlib.sha256(struct.pack(f"<{len(digests)}q", *digests)).hexdigest()


def _copied(out: object) -> object:
    if isinstance(out, torch.Tensor):
        return out.clone()
    if isinstance(out, list | tuple):
        return type(out)(_copied(each) for each in out)
    if isinstance(out, dict):
        return {key: _copied(each) for key, each in out.items()}
    return out


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's elements as integers of their size: float8 cannot be moved by index otherwise."""
    flat = tensor.view(-1)
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    kind = kinds.get(flat.element_size())
    return flat if kind is None else flat.view(kind)


def _apply_queued(
    flat: torch.Tensor, last: torch.Tensor, turn: Turn, length: int, room: int
) -> Undo:
    """Overwrite a stretch whose place only the device knows."""
    steps = torch.arange(length, device=flat.device)
    word = last.to(flat.device).remainder(MODULUS)
    at, source = (
        (word * a + b).remainder(MODULUS).remainder(room) + steps for a, b in (turn.at, turn.source)
    )
    held = flat.index_select(0, at)
    flat.index_copy_(0, at, flat.index_select(0, source))
    return lambda: flat.index_copy_(0, at, held)
