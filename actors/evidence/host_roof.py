"""What the host's cores reach: bandwidth of a copy, FLOP rate of a matrix product; by measurement.

A CPU has no data sheet that fits: cores given to a container, clocks and memory channels vary.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from kopt.actors.devices.cpu import CpuDevice, least_of_all_and_one

SIDE = 1024
MEASURE_S = 0.3
COPY_BYTES = 256 << 20
"""Beyond the caches."""


def host_roof() -> dict[str, Any]:
    """Return `tb_per_s`, `fp32_tflops` and `fp64_tflops` of the threads that torch uses."""
    memory = CpuDevice().memory(num_bytes=COPY_BYTES)
    return {
        "tb_per_s": memory.bytes_per_s / 1e12,
        "fp32_tflops": _product_rate(torch.float32) / 1e12,
        "fp64_tflops": _product_rate(torch.float64) / 1e12,
        "num_threads": torch.get_num_threads(),
    }


def _product_rate(dtype: torch.dtype) -> float:
    """FLOP per second of a square product, at best."""
    return 2.0 * SIDE**3 / least_of_all_and_one(lambda: _product_s(dtype))


def _product_s(dtype: torch.dtype) -> float:
    a, b = (torch.rand(SIDE, SIDE, dtype=dtype) for _ in range(2))
    out = torch.empty(SIDE, SIDE, dtype=dtype)
    best_s, until_s = float("inf"), time.perf_counter() + MEASURE_S
    while True:
        began_s = time.perf_counter()
        torch.mm(a, b, out=out)
        best_s = min(best_s, time.perf_counter() - began_s)
        if time.perf_counter() > until_s:
            return best_s
