"""Tells whoever watches a run how full its lanes are, once a second, by a file in its folder."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from kopt.data.lanes_file import LANES_FILE, write_lanes
from kopt.errors import StoreError
from kopt.lane import LaneLoad
from kopt.ports import Clock

EVERY_S = 1.0
_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def lanes_reported(
    run_folder: Path,
    lanes: Callable[[], list[LaneLoad]],
    *,
    clock: Clock,
    every_s: float = EVERY_S,
) -> AsyncIterator[None]:
    """Write `lanes.json` now and then within the body, and remove it at the end.

    A file that cannot be written is said once, and the run goes on.

    Args:
        run_folder: of the run.
        lanes: tells how full they are now.
        clock: for the file's time.
        every_s: between two of them, > 0.
    """
    reporting = asyncio.create_task(_report(run_folder, lanes, clock=clock, every_s=every_s))
    try:
        yield
    finally:
        reporting.cancel()
        await asyncio.wait([reporting])
        try:
            (run_folder / LANES_FILE).unlink(missing_ok=True)
        except OSError as error:
            _LOG.warning("%s stays: %s", LANES_FILE, error)


async def _report(
    run_folder: Path,
    lanes: Callable[[], list[LaneLoad]],
    *,
    clock: Clock,
    every_s: float,
) -> None:
    while True:
        try:
            write_lanes(run_folder, lanes(), time_ns=clock.now_ns())
        except StoreError as error:
            _LOG.warning("`kopt watch` will not see the lanes of this run: %s", error)
            return
        await asyncio.sleep(every_s)
