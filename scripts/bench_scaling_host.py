"""The GPUs of bench_scaling.py's host, and their own record of their activity."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Literal

from bench_scaling_journal import Window
from bench_throughput_record import DeviceRecord, device_record, visible_devices

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def gpus_of(device: Literal["cpu", "cuda"], *, most: int) -> tuple[str, ...]:
    """Return names of the devices to use, `most` at most; on a CPU one for each device worker.

    Args:
        device: kind.
        most: of the devices asked for.
    """
    if device == "cpu":
        return tuple(str(number) for number in range(most))
    names = visible_devices()
    if not names:
        try:
            listed = subprocess.run(
                ["nvidia-smi", "-L"], capture_output=True, text=True, check=True
            ).stdout
        except (OSError, subprocess.CalledProcessError):
            return ()
        names = [str(n) for n, line in enumerate(listed.splitlines()) if line.startswith("GPU ")]
    return tuple(names[:most])


@dataclass(slots=True, kw_only=True)
class Activity:
    """Records of several GPUs, by name; on a CPU there are none."""

    records: Mapping[str, DeviceRecord] = field(default_factory=dict)
    epoch_s: float = field(default_factory=lambda: time.time() - time.monotonic())
    """Of the monotonic clock, on the journal's."""

    def within(self, window: Window, gpus: Sequence[str]) -> list[float | None]:
        """Return the share of a window for which each GPU ran a kernel; None without a record."""
        begin_s, end_s = window.from_ns / 1e9 - self.epoch_s, window.to_ns / 1e9 - self.epoch_s
        shares = []
        for gpu in gpus:
            samples = self.records[gpu].samples if gpu in self.records else []
            inside = [sample for sample in samples if begin_s <= sample[0] <= end_s]
            shares.append(DeviceRecord(began_s=begin_s, samples=inside).share())
        return shares


@contextmanager
def activity_of(device: str, gpus: Sequence[str]) -> Iterator[Activity]:
    """Record the activity of each GPU within the body."""
    with ExitStack() as stack:
        records = {}
        for gpu in gpus if device == "cuda" else ():
            before = os.environ.get(_VISIBLE)
            os.environ[_VISIBLE] = gpu  # a record is of the first GPU that is visible
            try:
                records[gpu] = stack.enter_context(device_record(device))
            finally:
                if before is None:
                    del os.environ[_VISIBLE]
                else:
                    os.environ[_VISIBLE] = before
        yield Activity(records=records)
