"""How long a trivial kernel takes: whether anything else runs on the device."""

from __future__ import annotations

import statistics
import time

import torch

from kopt.actors.devices.base import Device

LATENCIES = 9


def latency_us(device: Device) -> float:
    """Return the microseconds from a trivial kernel's launch to its end: the median of a few."""
    value = device.place(torch.zeros(1))
    times_us = []
    for _ in range(LATENCIES):
        began_ns = time.perf_counter_ns()
        value.add_(1.0)
        device.check()
        times_us.append((time.perf_counter_ns() - began_ns) / 1e3)
    return statistics.median(times_us)
