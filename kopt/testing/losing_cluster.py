"""A Ray cluster of several nodes with pretended GPUs on this host, whose nodes die and join."""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import tempfile
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

GPUS_PER_NODE = 2
STORE_BYTES = 80 * 10**6
ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_DOCKER_CPU_WARNING": "1",
    "RAY_memory_usage_threshold": "0.98",
}
QUICK_CHECKS = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 3000,
    "health_check_failure_threshold": 3,
}
"""A node that says nothing counts as dead after some ten seconds; Ray's own values take longer."""

_LOG = logging.getLogger(__name__)


def new_cluster(folder: str, **head: object) -> Cluster:
    """Start a Ray of one node, without a dashboard, whose files lie in a folder.

    Args:
        folder: a short path: its sockets' are bounded.
        head: further arguments of its node.
    """
    from ray._common.utils import get_default_ray_temp_dir
    from ray.cluster_utils import Cluster

    os.environ.update(ENVIRONMENT)
    # It notes its address there, whatever its own folder; before Ray's first start nothing is.
    Path(get_default_ray_temp_dir()).mkdir(parents=True, exist_ok=True)
    return Cluster(
        initialize_head=True,
        head_node_args={
            "include_dashboard": False,
            "object_store_memory": STORE_BYTES,
            "temp_dir": folder,
            **head,
        },
    )


class LosingCluster:
    """A head without work, and nodes that can be lost. A context manager."""

    def __init__(self, *, nodes: int = 4, kind: str | None = None) -> None:
        """Say how many nodes there are to begin with, each with GPUS_PER_NODE of a kind."""
        self._wanted = nodes
        self._kind = kind
        self._cluster: Any = None
        self._folder = ""
        self._stopped: list[int] = []
        """Processes that do not run and are not dead."""
        self.killed = 0
        self.joined = 0
        """Beyond those of the beginning."""

    def __enter__(self) -> Self:
        self._folder = tempfile.mkdtemp(prefix="kl-", dir="/tmp")
        self._cluster = new_cluster(self._folder, num_cpus=0, _system_config=QUICK_CHECKS)
        for _ in range(self._wanted):
            self._add(self._kind)
        # Nodes that join later are added in another thread, where no signal may be handled; they
        # end with the head, whatever becomes of this process.
        self._cluster._shutdown_at_exit = False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pid in self._stopped:
            os.kill(pid, signal.SIGCONT)
        self._cluster.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def address(self) -> str:
        """Where a driver joins it."""
        return str(self._cluster.address)

    @property
    def nodes(self) -> list[Any]:
        """The nodes that can be lost, in an order that is the same each time."""
        return sorted(self._cluster.worker_nodes, key=lambda node: str(node.unique_id))

    def lose(self, rng: random.Random) -> None:
        """Kill one node with all of its processes, as a machine that is switched off.

        The last one is left: where no other comes up in its place, nothing would go on.
        """
        if len(self.nodes) < 2:
            return
        self._cluster.remove_node(rng.choice(self.nodes), allow_graceful=False)
        self.killed += 1

    def cut_off(self, rng: random.Random) -> None:
        """Have one node say nothing any more while its workers run on: its network is cut."""
        node = rng.choice(self.nodes)
        self._cluster.worker_nodes.remove(node)
        for process in node.all_processes["raylet"]:
            os.kill(process.process.pid, signal.SIGSTOP)
            self._stopped.append(process.process.pid)
        self.killed += 1

    def join(self, *, kind: str | None = None) -> None:
        """Add a node, of another kind of GPU if one is named."""
        self._add(kind or self._kind)
        self.joined += 1

    def join_all(self) -> None:
        """Add nodes until there are as many as in the beginning, as far as the host has them up."""
        while len(self.nodes) < self._wanted:
            try:
                self.join()
            except Exception as error:  # noqa: BLE001 - Ray's own, of no class: 30 s were too few
                _LOG.warning("no node joins now: %s", error)
                return

    def _add(self, kind: str | None) -> None:
        lanes = dict.fromkeys(("verify", "timing", "profile"), GPUS_PER_NODE)
        lanes |= dict.fromkeys(("build", "programmer"), 1000)
        if kind is not None:
            lanes[f"accelerator_type:{kind}"] = 1
        self._cluster.add_node(
            num_cpus=1,
            num_gpus=GPUS_PER_NODE,
            resources=lanes,
            object_store_memory=STORE_BYTES,
        )
