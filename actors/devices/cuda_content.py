"""The content of timed calls on a GPU: queued between them by kernels of ours, nothing waited for.

Order on the stream, for each call: the sweep of the pool, which evicts the L2; what the input set
held before its last change; the fresh stretch; the call; the digest of its outputs. An output that
is not there when the stream gets to the digest is digested as it is, and no other is accepted
later. Source: exploits 27, 33, §E2.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from kopt.actors.child.digest import memory_order, word_sum
from kopt.actors.child.perturb import Turn, stretch_of
from kopt.actors.devices.cuda_driver import Kernel, load_image
from kopt.actors.devices.cuda_image import chain_image
from kopt.actors.devices.layout import MOST_BYTES, layout_of
from kopt.actors.devices.pool import new_pool, pool_words

THREADS = 256
BLOCKS_PER_SM = 8
"""As many as run at once: each thread reads many words."""
_WORD_BYTES = 8
DIMENSIONS = 4
"""Of an output, those that lie one after the other taken together: as many as a kernel has."""
_POINTER, _COUNT, _LONG, _INT = ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64, ctypes.c_int


class Kernels:
    """Those of chain.cu, and the pool; one for all blocks of a child."""

    def __init__(self) -> None:
        """Load them for the current device.

        Raises:
            RuntimeError: they cannot be compiled, or the driver refuses them.
        """
        properties = torch.cuda.get_device_properties(0)
        module = load_image(chain_image(f"sm_{properties.major}{properties.minor}"))
        self.most_blocks = BLOCKS_PER_SM * int(properties.multi_processor_count)
        self.pool = new_pool(pool_words(int(properties.L2_cache_size)), device="cuda")
        self.digest = Kernel(module, "digest_words", (_POINTER, _COUNT, _POINTER, _INT, _POINTER))
        self.digest_strided = Kernel(
            module,
            "digest_strided",
            (_POINTER, _INT, _COUNT, *[_LONG] * 7, _POINTER),
        )
        self.sweep = Kernel(module, "sweep", (_POINTER, _COUNT, _POINTER, _POINTER))
        self.stage = Kernel(
            module,
            "stage",
            (_POINTER, _INT, _LONG, _LONG, *[_POINTER] * 2, *[_LONG] * 4, *[_POINTER] * 3),
        )
        self.put = Kernel(module, "put", (_POINTER, _INT, _LONG, _POINTER, _POINTER))

    def blocks(self, threads: int) -> int:
        """Return how many blocks so many threads of work are for."""
        return max(1, min(-(-threads // THREADS), self.most_blocks))


class _Change(NamedTuple):
    """A stretch that was overwritten, and how to put it back."""

    flat: torch.Tensor
    length: int
    held: torch.Tensor
    chosen: torch.Tensor
    """Where it begins: only the device knows."""


class CudaContent:
    """Of one block of calls."""

    def __init__(
        self,
        kernels: Kernels,
        sets: Mapping[int, Sequence[torch.Tensor]],
        *,
        count: int,
        key: int,
        sweeps: bool,
    ) -> None:
        """Begin a block on the current stream.

        Args:
            kernels: of the child.
            sets: number to the tensors of that input set, unperturbed.
            count: calls of the block.
            key: stands for the digest before the first call, unless a release brings another.
            sweeps: whether the pool is swept before each call.
        """
        self._kernels, self._sets = kernels, sets
        self._sweeps = sweeps
        self._of_torch = torch.cuda.current_stream()
        self._stream = ctypes.c_void_p(self._of_torch.cuda_stream)
        self._place = kernels.pool.device
        self._digests = torch.zeros(count + 1, dtype=torch.int64, device=self._place)
        self._digests[0] = key
        self._swept = torch.zeros(count, dtype=torch.int64, device=self._place)
        self._changes: dict[int, _Change] = {}
        self._made = 0
        sizes = {number: [each.numel() for each in tensors] for number, tensors in sets.items()}
        self._sizes = sizes
        self._spare: dict[tuple[int, int], _Change] = {}
        self._staged: torch.Tensor | None = None

    @property
    def key_at(self) -> int:
        """Address of the key."""
        return self._digests.data_ptr()

    @property
    def last_at(self) -> int:
        """Address of the last call's digest."""
        return self._digests[-1].data_ptr()

    def refresh(self, turn: Turn) -> None:
        """Queue what makes the content of a turn's input set fresh."""
        kernels, made = self._kernels, self._made
        digest, swept = self._word(self._digests, made), self._word(self._swept, made)
        if self._sweeps:
            pairs = kernels.pool.numel() // 2
            pool = kernels.pool.data_ptr()
            self._run(kernels.sweep, pool, pairs, digest, swept, threads=pairs)
        self._settle(turn.number)
        stretch = stretch_of(turn, self._sizes[turn.number])
        if stretch is None:
            return
        change = self._change(turn.number, stretch.leaf, stretch.length)
        size, length = change.flat.element_size(), stretch.length
        assert self._staged is not None
        flat, staged = change.flat.data_ptr(), self._staged.data_ptr()
        self._run(
            kernels.stage,
            flat,
            size,
            length,
            stretch.room,
            digest,
            swept,
            *turn.at,
            *turn.source,
            change.held.data_ptr(),
            staged,
            change.chosen.data_ptr(),
            threads=length,
        )
        chosen = change.chosen.data_ptr()
        self._run(kernels.put, flat, size, length, chosen, staged, threads=length)
        self._changes[turn.number] = change

    def take(self, tensors: Sequence[torch.Tensor]) -> None:
        """Queue the digest of the outputs of the call that was made."""
        self._made += 1
        for tensor in tensors:
            order = memory_order(tensor)
            self._digest(tensor.permute(order) if order != sorted(order) else tensor)

    def end(self) -> list[int]:
        """Put every set back to what was drawn, and return the digests of all calls; waits."""
        for number in list(self._changes):
            self._settle(number)
        digests = [int(each) for each in self._digests[1 : self._made + 1].tolist()]
        self._sets, self._spare, self._staged = {}, {}, None  # nothing of it is queued any more
        return digests

    def _digest(self, tensor: torch.Tensor) -> None:
        kernels, total = self._kernels, self._word(self._digests, self._made)
        if not self._is_here(tensor):
            self._digest_by_torch(tensor)
            return
        first = tensor.data_ptr()
        if tensor.is_contiguous() and first % _WORD_BYTES == 0:
            words, rest_bytes = divmod(tensor.numel() * tensor.element_size(), _WORD_BYTES)
            rest = first + words * _WORD_BYTES
            threads = max(words // 2, 1)
            self._run(kernels.digest, first, words, rest, rest_bytes, total, threads=threads)
            return
        layout = layout_of(tensor, min_dimensions=DIMENSIONS)
        if len(layout.sizes) > DIMENSIONS:
            self._digest_by_torch(tensor)
        elif layout.num_pieces:
            self._run(
                kernels.digest_strided,
                first,
                layout.piece_bytes,
                layout.num_pieces,
                *layout.sizes[1:],
                *layout.strides,
                total,
                threads=layout.num_pieces,
            )

    def _digest_by_torch(self, tensor: torch.Tensor) -> None:
        with torch.cuda.stream(self._of_torch):
            self._digests[self._made] += word_sum(tensor).to(self._place)

    def _is_here(self, tensor: torch.Tensor) -> bool:
        """Whether a kernel of ours can read a tensor's elements where they lie."""
        return (
            tensor.device.type == self._place.type
            and tensor.layout is torch.strided
            and not (tensor.is_conj() or tensor.is_neg())
            and tensor.element_size() <= MOST_BYTES
            and tensor.data_ptr() % tensor.element_size() == 0
        )

    def _settle(self, number: int) -> None:
        change = self._changes.pop(number, None)
        if change is None:
            return
        flat, size = change.flat.data_ptr(), change.flat.element_size()
        chosen, held = change.chosen.data_ptr(), change.held.data_ptr()
        self._run(self._kernels.put, flat, size, change.length, chosen, held, threads=change.length)

    def _change(self, number: int, leaf: int, length: int) -> _Change:
        """Return the buffers of a change; each tensor has its own, for as long as the block."""
        found = self._spare.get((number, leaf))
        with torch.cuda.stream(self._of_torch):  # a call may have left another one current
            if found is None:
                flat = self._sets[number][leaf].view(-1)
                chosen = torch.zeros((), dtype=torch.int64, device=self._place)
                found = _Change(flat, length, torch.empty_like(flat[:length]), chosen)
                self._spare[number, leaf] = found
            num_bytes = found.held.numel() * found.held.element_size()
            if self._staged is None or self._staged.numel() < num_bytes:
                self._staged = torch.empty(num_bytes, dtype=torch.uint8, device=self._place)
        return found

    @staticmethod
    def _word(words: torch.Tensor, at: int) -> int:
        return words.data_ptr() + at * _WORD_BYTES

    def _run(self, kernel: Kernel, *arguments: int, threads: int) -> None:
        blocks = self._kernels.blocks(threads)
        kernel(*arguments, blocks=blocks, threads=THREADS, stream=self._stream)
