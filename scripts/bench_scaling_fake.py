"""bench_scaling.py without GPUs: driver, trees, journal, lanes and Ray with pretended ones.

Workers take a given time for a verdict, so that what a GPU could judge is known: `share` is what
it did judge of that, between the first verdict and the tail. What is lost of it is the driver's,
the lanes' and Ray's. The nodes are of one host and have two GPUs each.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_scaling_journal import read_story, steady_window

from kopt.testing.losing_cluster import GPUS_PER_NODE, LosingCluster
from kopt.testing.losing_fleet import run_fleet_on

CANDIDATES_PER_SEARCH = 20
PER_GPU = 3
"""Expansions under way for each GPU: enough that none waits for the driver to ask."""


def fake_fleet(*, gpus: int, searches: int, pace_s: float) -> dict[str, Any]:
    """Run a fleet to its end on pretended GPUs, and return its figures.

    Args:
        gpus: a multiple of GPUS_PER_NODE.
        searches: trees for each GPU, of CANDIDATES_PER_SEARCH each.
        pace_s: that a worker takes for a verdict.

    Raises:
        ValueError: the GPUs make no whole number of nodes.
    """
    nodes, odd = divmod(gpus, GPUS_PER_NODE)
    if odd or not nodes:
        raise ValueError(f"expected pretended GPUs in nodes of {GPUS_PER_NODE}, found {gpus}")
    with (
        LosingCluster(nodes=nodes) as machines,
        tempfile.TemporaryDirectory(prefix="scaling-fake-") as folder,
    ):
        account = run_fleet_on(
            machines.address,
            Path(folder),
            searches=gpus * searches,
            candidates=CANDIDATES_PER_SEARCH,
            pace_s=pace_s,
            trouble=_no_trouble,
            max_in_flight=PER_GPU * gpus,
        )
        story = read_story(Path(folder))
    window = steady_window(story.judged_ns, places=gpus)
    rate = None if window is None else window.per_gpu_hour(gpus)
    return {
        "gpus": gpus,
        "judged": len(story.judged_ns),
        "lost": account.lost,
        "doubled": account.duplicates,
        "seconds": None if window is None else window.seconds,
        "per_gpu_hour": rate,
        "share": None if rate is None else rate * pace_s / 3600.0,
        "driver_rss_mb": account.driver_rss_mb,
        "fault": story.fault,
    }


def report_fake(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    print(f"{'GPUs':>5}{'judged':>8}{'/GPU h':>9}{'share':>8}{'lost':>6}{'doubled':>9}{'MB':>6}")
    for row in rows:
        rate, share = row["per_gpu_hour"], row["share"]
        print(
            f"{row['gpus']:>5}{row['judged']:>8}{'-' if rate is None else format(rate, '.0f'):>9}"
            f"{'-' if share is None else format(share, '.3f'):>8}{row['lost']:>6}"
            f"{row['doubled']:>9}{row['driver_rss_mb']:>6.0f}"
        )


def _no_trouble(events: Callable[[], int]) -> None:
    """Let the fleet run undisturbed."""
    del events
