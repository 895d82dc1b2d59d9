"""A programmer's workplace without a cluster, for programmers that start no process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kopt.actors.cluster import Cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.programmers.registry import Workplace
from kopt.actors.quiet import Quiet


def small_workplace(
    run_dir: Path, *, warn: Callable[[str], None], arm: str = "arm", device: str = "cpu"
) -> Workplace:
    """Return a workplace of one CPU worker that is not there."""
    return Workplace(
        cluster=Cluster(
            device="cuda" if device == "cuda" else "cpu",
            devices=1,
            devices_here=1,
            build_workers=1,
            programmer_workers=1,
            lanes=frozenset(),
        ),
        cluster_config=ClusterConfig(),
        evaluate=EvaluateConfig(),
        quiet=Quiet(device),
        run_dir=run_dir,
        arm=arm,
        warn=warn,
    )
