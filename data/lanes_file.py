"""`lanes.json` of a run folder: how full its lanes are, written while a driver runs.

A file of its own, replaced whole by rename: whoever watches a run reads it without a word to the
driver. The journal has what happened; this is only what goes on, and is gone with the driver.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kopt.data.atomic import write_bytes
from kopt.lane import LaneLoad

LANES_FILE = "lanes.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesSeen:
    """What was written last."""

    time_ns: int
    """When, in nanoseconds since the epoch."""
    lanes: tuple[LaneLoad, ...]


def write_lanes(run_folder: Path, lanes: Sequence[LaneLoad], *, time_ns: int) -> None:
    """Write or replace the file.

    Raises:
        StoreError: it cannot be written; the one before is as it was.
    """
    seen = {
        "schema": SCHEMA_VERSION,
        "time_ns": time_ns,
        "lanes": [asdict(lane) for lane in lanes],
    }
    # Gone with the driver anyway, so it need not outlive a power failure.
    write_bytes(run_folder / LANES_FILE, json.dumps(seen).encode(), durable=False)


def read_lanes(run_folder: Path) -> LanesSeen | None:
    """Return what was written last; None where there is nothing that this version can read."""
    try:
        seen = json.loads((run_folder / LANES_FILE).read_bytes())
        if seen["schema"] != SCHEMA_VERSION:
            return None
        return LanesSeen(
            time_ns=int(seen["time_ns"]),
            lanes=tuple(_load(lane) for lane in seen["lanes"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _load(lane: dict[str, Any]) -> LaneLoad:
    """Return a lane as it was before JSON made lists of its tuples."""
    return LaneLoad(**{**lane, "worker_busy_s": tuple(lane.get("worker_busy_s", ()))})
