"""What crosses between a child and its supervisor: buffers that were mapped, tensors to fetch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch

from kopt.actors.child.memory import map_tensor, spec_of
from kopt.actors.child.module import StageFailed
from kopt.actors.child.outputs import notes_on, tensors_of
from kopt.actors.child.plain import NotPlain, Tree, decode, encode
from kopt.actors.child.tensor_spec import Place, spec_from_json
from kopt.actors.devices.base import Device


class Exchange:
    """The supervisor's buffers by their numbers, and a stash of tensors that it may fetch."""

    def __init__(self) -> None:
        """Begin with neither."""
        self._buffers: dict[int, torch.Tensor] = {}
        self._stash: list[torch.Tensor] = []

    def map(
        self,
        device: Device | None,
        *,
        fds: list[int],
        numbers: list[int],
        specs: list[Any],
        places: list[Place],
        private: list[bool],
    ) -> None:
        """Map tensors of the supervisor under their numbers; private ones are ours to write."""
        for fd, number, spec, place, own in zip(fds, numbers, specs, places, private, strict=True):
            form = spec_from_json(spec)
            if place == "cpu":
                self._buffers[number] = map_tensor(fd, form, writable=not own)
            else:
                assert device is not None, "a device is opened before its memory is mapped"
                self._buffers[number] = device.map(fd, form)
            os.close(fd)

    def unmap(self, numbers: list[int]) -> None:
        """Let buffers go."""
        for number in numbers:
            self._buffers.pop(number, None)

    def buffer(self, number: int) -> torch.Tensor:
        """Return a buffer."""
        return self._buffers[number]

    def take(self, number: int) -> torch.Tensor:
        """Return a buffer that from now on is its taker's alone."""
        return self._buffers.pop(number)

    def read_back(self, values: list[Any], *, tree: Tree) -> None:
        """Copy the tensors among some values, as they are now, into the buffers of a tree."""
        leaves: list[int] = []
        decode(tree, leaves.append)
        for each, tensor in zip(leaves, tensors_of(values), strict=True):
            self._buffers[each].copy_(tensor)

    def clear(self) -> None:
        """Let go of what was kept."""
        self._stash = []

    def keep(self, tensor: torch.Tensor) -> int:
        """Keep a tensor to be fetched; return its place."""
        self._stash.append(tensor)
        return len(self._stash) - 1

    def keep_tree(self, value: object, *, by_key: bool = False) -> Tree:
        """Keep the tensors of a value; return its structure.

        Args:
            value: tensors, plain values, and containers of them.
            by_key: order dictionaries by their keys, as outputs are compared.

        Raises:
            NotPlain: it holds something else.
        """
        return encode(value, self.keep, by_key=by_key)

    def kept(self) -> dict[str, Any]:
        """Return what is told of the kept tensors, so that buffers can be made for them."""
        return {"specs": [spec_of(tensor).to_json() for tensor in self._stash]}

    def fetch(self, into: list[int]) -> None:
        """Copy what was kept into buffers, in order, and let it go."""
        for number, tensor in zip(into, self._stash, strict=True):
            self._buffers[number].copy_(tensor)
        self.clear()

    def hand_out(
        self, outputs: list[object], *, arguments: Sequence[list[Any]], into: list[list[int]]
    ) -> dict[str, Any]:
        """Copy outputs of calls into buffers, or keep them where there are none (`into` empty).

        Args:
            outputs: of the module, one for each call.
            arguments: that each call was given, with which its output may share memory.
            into: numbers of the buffers of each call's tensors.

        Raises:
            StageFailed: an output is no tree of tensors.
        """
        self.clear()
        trees, notes = [], []
        for position, (out, given) in enumerate(zip(outputs, arguments, strict=True)):
            first = len(self._stash)
            try:
                trees.append(self.keep_tree(out, by_key=True))
            except NotPlain as error:
                raise StageFailed("output", f"forward returned {error}") from error
            tensors = self._stash[first:]
            notes.append(notes_on(tensors, given))
            if into:
                buffers = [self._buffers[each] for each in into[position]]
                for buffer, tensor in zip(buffers, tensors, strict=False):
                    if tuple(buffer.shape) == tuple(tensor.shape):
                        buffer.copy_(tensor)
        answer = {"trees": trees, "notes": notes, **self.kept()}
        if into:
            self.clear()
        return answer
