"""The `cpu` device: calls run in this process, and its own clock times blocks of them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from time import perf_counter_ns  # bound before a candidate could patch the time module
from typing import Any

import torch

from kopt.actors.devices.base import Call, DeviceName, TimedCalls
from kopt.data.manifest import cpu_model
from kopt.ports import Target


class CpuDevice:
    """Host processors. Caches are as the calls leave them: warm."""

    name: DeviceName = "cpu"

    def set_up(self, *, num_threads: int, matmul_tf32: bool, cudnn_tf32: bool) -> None:
        """Pin the number of threads; there is no TF32 here."""
        del matmul_tf32, cudnn_tf32
        torch.set_num_threads(num_threads)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor itself."""
        return tensor

    def seed(self, value: int) -> None:
        """Seed the host's default generator."""
        torch.default_generator.manual_seed(value)

    def check(self) -> None:
        """Do nothing: calls have ended when they return."""

    def time_calls(
        self,
        call: Call,
        arguments: Sequence[Sequence[Any]],
        *,
        before: Callable[[int], None],
        flush: bool,
    ) -> TimedCalls:
        """Time each call by the process's clock; `flush` has no meaning here."""
        del flush
        out: object = None
        marks_ns: list[int] = []
        began_ns = perf_counter_ns()
        for position, each in enumerate(arguments):
            before(position)
            marks_ns.append(perf_counter_ns())
            out = call(each)
            marks_ns.append(perf_counter_ns())
        each_us = [
            (end - begin) / 1e3 for begin, end in zip(marks_ns[::2], marks_ns[1::2], strict=True)
        ]
        return TimedCalls(each_us, (marks_ns[-1] - began_ns) / 1e3, out)


def cpu_target() -> Target:
    """Return the host's processor as a target."""
    return Target(
        device="cpu", name=cpu_model(), arch=platform.machine(), languages=("cpp", "torch")
    )
