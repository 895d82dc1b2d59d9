"""The `cpu` device: calls run in this process, and its own clock times blocks of them."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from time import perf_counter_ns  # bound before a candidate could patch the time module
from typing import Any

import torch

from kopt.actors.devices.base import Call, DeviceName
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

    def check(self) -> None:
        """Do nothing: calls have ended when they return."""

    def time_calls(
        self, call: Call, arguments: Sequence[Sequence[Any]], *, flush: bool
    ) -> tuple[list[float], object]:
        """Time all calls together; `flush` has no meaning here."""
        del flush
        out: object = None
        began_ns = perf_counter_ns()
        for each in arguments:
            out = call(each)
        return [(perf_counter_ns() - began_ns) / 1e3], out


def cpu_target() -> Target:
    """Return the host's processor as a target."""
    return Target(
        device="cpu", name=cpu_model(), arch=platform.machine(), languages=("cpp", "torch")
    )
