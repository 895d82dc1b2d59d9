"""The devices' own record of their activity: how much of the time they ran kernels.

NVML's utilisation is the share of its last sample period (a sixth of a second to a second) in which
at least one kernel was on the device; it is read ten times a second through the driver's library,
which needs no package. Transfers alone do not count in it, so that a share is a lower bound.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

LIBRARY = "libnvidia-ml.so.1"
EVERY_S = 0.1


@dataclass(slots=True)
class DeviceRecord:
    """Samples of the devices' driver; none where it has no record."""

    began_s: float = 0.0
    """On the monotonic clock."""
    samples: list[tuple[float, float]] = field(default_factory=list)
    """When each was read, on that clock, and per cent in the mean of the devices."""

    def share(self, *, until_s: float | None = None) -> float | None:
        """Return the mean over time, 0 to 1; None without samples.

        A sample stands for the time since the one before it.

        Args:
            until_s: later ones are left out; None takes all.
        """
        before_s, busy_s, whole_s = self.began_s, 0.0, 0.0
        for at_s, percent in self.samples:
            if until_s is not None and at_s > until_s:
                break
            busy_s += (at_s - before_s) * percent / 100.0
            whole_s += at_s - before_s
            before_s = at_s
        return busy_s / whole_s if whole_s > 0.0 else None


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


@contextmanager
def device_record(
    device: str, *, num_devices: int = 1, library: str = LIBRARY
) -> Iterator[DeviceRecord]:
    """Record the activity of the devices within the body.

    Args:
        device: `cuda`; others have no record.
        num_devices: how many of those that are visible, the first ones.
        library: NVML.
    """
    record = DeviceRecord(began_s=time.monotonic())
    nvml = _open(library) if device == "cuda" else None
    handles = [] if nvml is None else _handles(nvml, visible_devices()[:num_devices], num_devices)
    if nvml is None or not handles:
        yield record
        return
    over = threading.Event()

    def watch() -> None:
        found = _Utilisation()
        while not over.wait(EVERY_S):
            read = [
                float(found.gpu)
                for handle in handles
                if not nvml.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(found))
            ]
            if read:
                record.samples.append((time.monotonic(), sum(read) / len(read)))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield record
    finally:
        over.set()
        watcher.join()
        nvml.nvmlShutdown()


def visible_devices() -> list[str]:
    """Return what CUDA_VISIBLE_DEVICES names, numbers or UUIDs; nothing where it is not set."""
    return [word.strip() for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]


def _handles(nvml: ctypes.CDLL, names: list[str], num_devices: int) -> list[ctypes.c_void_p]:
    handles = []
    for name in names or [str(number) for number in range(num_devices)]:
        handle = ctypes.c_void_p()
        if name.isdigit():
            failed = nvml.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(handle))
        else:
            failed = nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
        if not failed:
            handles.append(handle)
    return handles


def _open(library: str) -> ctypes.CDLL | None:
    """Return NVML, ready; None where it is not there or does not answer."""
    try:
        nvml = ctypes.CDLL(library)
    except OSError:
        return None
    return None if nvml.nvmlInit_v2() else nvml
