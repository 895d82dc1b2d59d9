"""One lock for each device of a node, between processes: nothing is timed beside a profiler."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def device_lock(cache_dir: Path, *, device: str) -> Iterator[None]:
    """Hold the device that this process works on, waiting for whoever holds it.

    The lock goes with the process that holds it, however that one ends.

    Args:
        cache_dir: kopt's cache on this node, which all its processes share.
        device: kind of device; which GPU it is says CUDA_VISIBLE_DEVICES.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or "0"
    first = "".join(c if c.isalnum() else "-" for c in visible.split(",")[0].strip())
    path = cache_dir / "locks" / (device if device == "cpu" else f"{device}-{first}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
