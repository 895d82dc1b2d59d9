"""The device port: what a child needs of the device it computes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:  # drivers name devices without torch, children need no ports
    import torch

    from kopt.actors.child.perturb import Turn
    from kopt.actors.child.tensor_spec import TensorSpec
    from kopt.ports import Target
    from kopt.speed_of_light import Memory

DeviceName = Literal["cpu", "cuda"]

Pace = Literal["ahead", "queued", "waiting"]
"""How the host launches timed calls on a GPU: all of a block before the first begins, when it is
released (`ahead`); as fast as it can (`queued`), or once the device has ended the last (`waiting`),
each behind a short pause and a buffer that is overwritten. A CPU has one pace."""

Call = Callable[[Sequence[Any]], object]
"""Runs the module once on one input set's arguments."""


class TimedCalls(NamedTuple):
    """What timing some calls found, by the device's or the process's own clock."""

    each_us: list[float]
    """Of each call alone."""
    total_us: float
    """From before the first call to after the last, with what was done between them."""


class Content(Protocol):
    """What the calls of one block are given, and what is kept of what they gave."""

    def refresh(self, turn: Turn) -> None:
        """Make the content of a turn's input set fresh, by the digest of the call before."""
        ...

    def take(self, tensors: Sequence[torch.Tensor]) -> None:
        """Digest the outputs of the call that was made."""
        ...

    def end(self) -> list[int]:
        """Put every set back to what was drawn; return the digests of all calls."""
        ...


class Device(Protocol):
    """One device. Made in a child, before any untrusted code is loaded."""

    name: DeviceName
    pace: Pace
    """Of timed calls that are flushed."""
    ticket: int
    """Of the release that the next block waits for; 0 for none."""

    def set_up(self, *, num_threads: int, matmul_tf32: bool, cudnn_tf32: bool) -> None:
        """Pin what the ladder pins, the same for every role."""
        ...

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor on the device: itself where the device is the host."""
        ...

    def map(self, fd: int, spec: TensorSpec) -> torch.Tensor:
        """Map device memory that another process lent; the descriptor stays the caller's.

        Raises:
            RuntimeError: it is none of this device's.
        """
        ...

    def seed(self, value: int) -> None:
        """Seed the default generators of the device and the host: cheap enough for every call."""
        ...

    def check(self) -> None:
        """Wait for everything under way, and raise what it raised.

        Raises:
            RuntimeError: a launch failed or a kernel faulted.
        """
        ...

    def join(self, fd: int) -> None:
        """Map the page by which blocks are released; the descriptor stays the caller's.

        Raises:
            RuntimeError: this device has no use for it.
        """
        ...

    def pool_words(self) -> int:
        """Return the words of the pool that is swept between calls; 0 where there is none."""
        ...

    def content(
        self, sets: Mapping[int, Sequence[torch.Tensor]], *, count: int, key: int, sweeps: bool
    ) -> Content:
        """Return the content of a block of calls.

        Args:
            sets: number to the tensors of that input set, unperturbed.
            count: calls of the block.
            key: secret that stands for the digest before the first; a release brings its own.
            sweeps: whether the pool is swept before each call, where there is one.
        """
        ...

    def time_calls(
        self,
        call: Call,
        arguments: Sequence[Sequence[Any]],
        *,
        before: Callable[[int], None],
        after: Callable[[object], None],
        flush: bool,
    ) -> TimedCalls:
        """Run one call for each set of arguments.

        Args:
            call: the module.
            arguments: in the order to be run.
            before: called with the position before each call; not part of the call's time.
            after: called with the outputs right after each call, likewise.
            flush: whether calls are told apart, cold where the device can.
        """
        ...

    def let_go(self) -> None:
        """Give back device memory that this process keeps for later, where it is much."""
        ...

    def memory(self, *, num_bytes: int) -> Memory | None:
        """Return how fast so many bytes move, or None where that is not known."""
        ...


def open_device(name: DeviceName) -> Device:
    """Return the adapter of a device kind."""
    if name == "cuda":
        from kopt.actors.devices.cuda import CudaDevice

        return CudaDevice()
    from kopt.actors.devices.cpu import CpuDevice

    return CpuDevice()


def describe(name: DeviceName) -> Target:
    """Return what candidates are written for, without making a device context.

    Raises:
        ConfigError: the device is not here.
    """
    if name == "cuda":
        from kopt.actors.devices.cuda import cuda_target

        return cuda_target()
    from kopt.actors.devices.cpu import cpu_target

    return cpu_target()
