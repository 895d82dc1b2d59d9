"""The device port: what a child needs of the device it computes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import torch

from kopt.ports import Target

DeviceName = Literal["cpu", "cuda"]

Call = Callable[[Sequence[Any]], object]
"""Runs the module once on one input set's arguments."""


class Device(Protocol):
    """One device. Made in a child, before any untrusted code is loaded."""

    name: DeviceName

    def set_up(self, *, num_threads: int, matmul_tf32: bool, cudnn_tf32: bool) -> None:
        """Pin what the ladder pins, the same for every role."""
        ...

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor on the device: itself where the device is the host."""
        ...

    def check(self) -> None:
        """Wait for everything under way, and raise what it raised.

        Raises:
            RuntimeError: a launch failed or a kernel faulted.
        """
        ...

    def time_calls(
        self, call: Call, arguments: Sequence[Sequence[Any]], *, flush: bool
    ) -> tuple[list[float], object]:
        """Run one call for each set of arguments.

        Args:
            call: the module.
            arguments: in the order to be run.
            flush: evict the caches before each call and time each by itself (where the device has
                a clock of its own); otherwise the calls follow each other and one time is given.

        Returns:
            Microseconds by the device's or this process's own clock (one for each call with
            flush, else one total for all), and the last call's outputs.
        """
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
