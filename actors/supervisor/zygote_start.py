"""Starting a zygote, which whoever is in a hurry does first: nothing here imports torch."""

from __future__ import annotations

import os
from pathlib import Path

from kopt.actors.child.preload import Preload
from kopt.actors.supervisor.environment import child_environment
from kopt.actors.supervisor.zygote import Zygote


def start_zygote(preload: Preload, *, cache_dir: Path) -> Zygote:
    """Start a zygote for children on this process's cores; no device is touched.

    Args:
        preload: what it loads for them.
        cache_dir: kopt's cache on this node.

    Raises:
        ConfigError: KOPT_SANDBOX names a level that there is not.
    """
    # A child gets a scratch folder of its own with each fork; the zygote writes nothing.
    return Zygote(
        child_environment(
            scratch=Path("/tmp"), num_threads=len(os.sched_getaffinity(0)), cache_dir=cache_dir
        ),
        preload=preload,
    )
