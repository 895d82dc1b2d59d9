"""The device's own record of its activity: how much of the time it ran kernels.

NVML's utilisation is the share of its last sample period (a sixth of a second to a second) in which
at least one kernel was on the device; it is read ten times a second through the driver's library,
which needs no package.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

LIBRARY = "libnvidia-ml.so.1"
EVERY_S = 0.1


@dataclass(slots=True)
class DeviceRecord:
    """Samples of the device's driver, in per cent; none where it has no record."""

    samples: list[int] = field(default_factory=list)

    def share(self) -> float | None:
        """Return the mean, 0 to 1; None without samples."""
        return sum(self.samples) / len(self.samples) / 100.0 if self.samples else None


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


@contextmanager
def device_record(device: str, *, library: str = LIBRARY) -> Iterator[DeviceRecord]:
    """Record the first device's activity within the body.

    Args:
        device: `cuda`; others have no record.
        library: NVML.
    """
    record = DeviceRecord()
    nvml = _open(library) if device == "cuda" else None
    handle = ctypes.c_void_p()
    if nvml is None or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)):
        yield record
        return
    over = threading.Event()

    def watch() -> None:
        found = _Utilisation()
        while not over.wait(EVERY_S):
            if not nvml.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(found)):
                record.samples.append(found.gpu)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield record
    finally:
        over.set()
        watcher.join()
        nvml.nvmlShutdown()


def _open(library: str) -> ctypes.CDLL | None:
    """Return NVML, ready; None where it is not there or does not answer."""
    try:
        nvml = ctypes.CDLL(library)
    except OSError:
        return None
    return None if nvml.nvmlInit_v2() else nvml
