"""What a worker can say of its device: which one it is, and what NVML counts against it."""

from __future__ import annotations

import platform
from dataclasses import replace

from kopt.actors.code_tree import code_tree
from kopt.actors.devices.base import DeviceName
from kopt.actors.evidence.nvml import Meter
from kopt.device_health import DeviceFacts
from kopt.errors import ProfileFailed


def device_facts(device: DeviceName, *, number: int, name: str) -> DeviceFacts:
    """Return the facts of this process's device; without NVML, what is known without.

    Args:
        device: its kind.
        number: of the worker, which names a device that has no name of its own.
        name: of the GPU, or of the CPU's model.
    """
    host = platform.node()
    unnamed = DeviceFacts(
        device=f"{host}/{device}{number}", host=host, name=name, worker=number, code=code_tree()
    )
    if device == "cpu":
        return unnamed
    try:
        with Meter() as meter:
            return replace(unnamed, device=meter.uuid(), memory_errors=meter.memory_errors())
    except ProfileFailed:
        return unnamed  # which one Ray gives to the next worker cannot be told then
