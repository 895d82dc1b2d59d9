"""The child's side of evidence: looks at one forward call and reports what it saw, as JSON bytes.

A candidate can lie about anything in here. Evidence steers whoever writes candidates; it never
decides a verdict or a time.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch.autograd.profiler import profile, record_function

from kopt.actors.devices.base import Device
from kopt.actors.evidence.energy import measure_energy
from kopt.actors.evidence.forward import load_forward, warm
from kopt.actors.evidence.host_roof import host_roof
from kopt.actors.evidence.laps import Laps
from kopt.actors.evidence.nvml import Meter
from kopt.actors.evidence.order import Order, order_from_json
from kopt.tools.collect.trace_events import CALL_MARK

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
        from kopt.actors.evidence.reference_work import reference_work  # fake tensors: seconds

        report = reference_work(told, folder=Path.cwd())
    elif told.look == "roof":
        report = host_roof()
    elif told.look == "energy":
        report = _energy(device, told)
    else:
        report = _traced(device, told)
    data = bytearray(json.dumps(report).encode())
    return torch.frombuffer(data, dtype=torch.uint8)


def _energy(device: Device, order: Order) -> dict[str, Any]:
    forward = load_forward(order, device=device, folder=Path.cwd())
    assert forward.reference is not None, "energy is that of a candidate beside its reference"
    with Meter() as meter:
        figures = measure_energy(
            forward.run, baseline=forward.reference, wait=device.check, counter=meter
        )
    return asdict(figures)


def _traced(device: Device, order: Order) -> dict[str, Any]:
    laps = Laps()
    forward = load_forward(order, device=device, folder=Path.cwd())
    laps.passed("load")
    disagreement = forward.agreement()
    seconds = warm(forward, device)
    laps.passed("warm")
    calls = max(1, min(MOST_CALLS, int(TRACED_S / max(seconds, 1e-6))))
    # That of torch.profiler imports torch's compiler to ask for one flag: four seconds.
    with profile(use_kineto=True, use_device="cuda" if device.name == "cuda" else None) as profiler:
        for _ in range(calls):
            with record_function(CALL_MARK):
                forward.run()
            device.check()
    path = Path.cwd() / TRACE_FILE
    profiler.export_chrome_trace(str(path))
    laps.passed("record")
    return {
        "disagreement": disagreement,
        "call_s": seconds,
        "trace": path.read_text("utf-8"),
        "took_s": laps.took_s,
    }
