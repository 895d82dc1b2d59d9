"""What the host's cores reach: bandwidth of a copy, FLOP rate of a matrix product; by measurement.

A CPU has no data sheet that fits: cores given to a container, clocks and memory channels vary.
"""

from __future__ import annotations

from typing import Any

import torch

from kopt.actors.devices.cpu import CpuDevice, product_flop_per_s

COPY_BYTES = 256 << 20
"""Beyond the caches."""


def host_roof() -> dict[str, Any]:
    """Return `tb_per_s`, `fp32_tflops` and `fp64_tflops` of the threads that torch uses."""
    memory = CpuDevice().memory(num_bytes=COPY_BYTES)
    return {
        "tb_per_s": memory.bytes_per_s / 1e12,
        "fp32_tflops": product_flop_per_s(torch.float32) / 1e12,
        "fp64_tflops": product_flop_per_s(torch.float64) / 1e12,
        "num_threads": torch.get_num_threads(),
    }
