"""The chain of a block of timed calls: what each is given depends on what the one before gave.

Between two calls the output of the first is digested, and its digest decides the content of the
second's input; a secret key decides the first's. So the calls of a block can only be made one
after the other, each of them whole: work put off, done ahead or done for several calls together has
no input to start from. A hash of all digests goes back with the block's time, and binds the child
to outputs that it may be asked for later.

On a GPU everything here is queued behind the call, without waiting for it; an output that is not
there when the call's own stream reaches its end is digested as it is.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from itertools import islice

import torch

from kopt.actors.child.digest import memory_order, tensors_in
from kopt.actors.child.perturb import Turn, turns
from kopt.actors.devices.base import Content


class Chain:
    """One block of calls in the child."""

    def __init__(
        self,
        content: Content,
        numbers: Sequence[int],
        *,
        seed: int,
        count: int,
        copies: bool = False,
    ) -> None:
        """Begin a block.

        Args:
            content: of the block's calls.
            numbers: of the input sets that it is drawn from.
            seed: secret of the block, known from now on.
            count: calls of the block.
            copies: keep copies of the outputs, for a module whose outputs may be views of inputs.
        """
        self._content, self._copies = content, copies
        self.turns: list[Turn] = list(islice(turns(sorted(numbers), seed=seed), count))
        """Of the calls, in order."""
        self.outputs: list[object] = []
        """Of the calls that were made, all kept."""

    def before_call(self, position: int) -> None:
        """Make the content of the call's input set fresh."""
        self._content.refresh(self.turns[position])

    def after_call(self, out: object) -> None:
        """Keep a call's outputs and digest them."""
        self._content.take(tensors_in(out))
        self.outputs.append(_copied(out) if self._copies else out)

    def end(self) -> list[int]:
        """Put every set back, and return the digests of all calls; waits for the device."""
        return self._content.end()


def commitment(digests: Sequence[int]) -> str:
    """Return the hash that stands for the digests of a block."""
    return hashlib.sha256(struct.pack(f"<{len(digests)}q", *digests)).hexdigest()


def _copied(out: object) -> object:
    """Return copies, each read in the order that what it was made of is read in.

    That of a tensor with holes is its own; a plain clone of one lies in the order of its strides.
    """
    if isinstance(out, torch.Tensor):
        is_own = memory_order(out) == list(range(out.dim()))
        return out.clone(memory_format=torch.contiguous_format if is_own else torch.preserve_format)
    if isinstance(out, list | tuple):
        return type(out)(_copied(each) for each in out)
    if isinstance(out, dict):
        return {key: _copied(each) for key, each in out.items()}
    return out
