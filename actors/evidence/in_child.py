"""The child's side of evidence: looks at one forward call and reports what it saw, as JSON bytes.

A candidate can lie about anything in here. Evidence steers whoever writes candidates; it never
decides a verdict or a time.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from kopt.actors.devices.base import Device
from kopt.actors.evidence.energy import measure_energy
from kopt.actors.evidence.forward import Forward, load_forward
from kopt.actors.evidence.host_roof import host_roof
from kopt.actors.evidence.nvml import Meter
from kopt.actors.evidence.order import Order, order_from_json
from kopt.actors.evidence.reference_work import reference_work
from kopt.tools.collect.trace_events import CALL_MARK

WARM_UPS = 3
"""Calls before any that count: autotuning, caches of libraries, lazily loaded kernels."""
MOST_CALLS = 5
TRACED_S = 0.5
"""Aimed at for all traced calls; one is traced however long it takes."""
TRACE_FILE = "kopt_trace.json"


def observe(device: Device, order: dict[str, Any]) -> torch.Tensor:
    """Do what an order says; return the report as bytes.

    Args:
        device: opened, its flags pinned.
        order: JSON form of an `Order`.

    Raises:
        Whatever the sources raise.
    """
    told = order_from_json(order)
    report: dict[str, Any]
    if told.look == "work":
        report = reference_work(told, folder=Path.cwd())
    elif told.look == "roof":
        report = host_roof()
    elif told.look == "energy":
        report = _energy(device, told)
    else:
        report = _traced(device, told)
    data = bytearray(json.dumps(report).encode())
    return torch.frombuffer(data, dtype=torch.uint8)


def warm(forward: Forward, device: Device) -> float:
    """Call until nothing is new; return the seconds of the last call."""
    seconds = 0.0
    for _ in range(WARM_UPS):
        began_s = time.perf_counter()
        forward.run()
        device.check()
        seconds = time.perf_counter() - began_s
    return seconds


def _energy(device: Device, order: Order) -> dict[str, Any]:
    forward = load_forward(order, device=device, folder=Path.cwd())
    assert forward.reference is not None, "energy is that of a candidate beside its reference"
    with Meter() as meter:
        figures = measure_energy(
            forward.run, baseline=forward.reference, wait=device.check, counter=meter
        )
    return asdict(figures)


def _traced(device: Device, order: Order) -> dict[str, Any]:
    forward = load_forward(order, device=device, folder=Path.cwd())
    disagreement = forward.agreement()
    seconds = warm(forward, device)
    calls = max(1, min(MOST_CALLS, int(TRACED_S / max(seconds, 1e-6))))
    activities = [ProfilerActivity.CPU]
    if device.name == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiler:
        for _ in range(calls):
            with record_function(CALL_MARK):
                forward.run()
            device.check()
    path = Path.cwd() / TRACE_FILE
    profiler.export_chrome_trace(str(path))
    return {"disagreement": disagreement, "call_s": seconds, "trace": path.read_text("utf-8")}
