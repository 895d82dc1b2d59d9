"""Replicas on the cluster: an actor each, with its GPUs on one node by a placement group."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import ray
from ray.exceptions import RayActorError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from kopt.actors.cluster import Cluster
from kopt.actors.programmers.vllm.figures import Figures
from kopt.actors.programmers.vllm.replica import Down, Replica, Up
from kopt.actors.programmers.vllm_config import VllmConfig
from kopt.errors import ConfigError

STOP_S = 20.0
"""What an actor may need beyond its server's grace."""

T = TypeVar("T")


class RemoteReplica:
    """A replica in an actor (the Post of seat.py)."""

    def __init__(self, actor: Any) -> None:  # noqa: ANN401 - Ray types no handle
        """Take the actor's handle."""
        self._actor = actor
        self.is_lost = False
        """Whether the actor's process is gone."""

    async def start(self) -> Up | Down:
        """Start its server."""
        return await self._ask(self._actor.start.remote, self._down)

    async def wait(self) -> Down:
        """Wait until its server has ended."""
        return await self._ask(self._actor.wait.remote, self._down)

    async def is_well(self) -> bool:
        """Return whether its server says that it is well."""
        return await self._ask(self._actor.is_well.remote, lambda _: False)

    async def figures(self) -> Figures | None:
        """Return its servers' figures so far."""
        return await self._ask(self._actor.figures.remote, lambda _: None)

    async def stop(self, grace_s: float) -> Figures | None:
        """End its server."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s + STOP_S):
                return await self._ask(lambda: self._actor.stop.remote(grace_s), lambda _: None)
        return None

    def discard(self) -> None:
        """Kill the actor; its server goes with it."""
        self.is_lost = True
        ray.kill(self._actor)

    async def _ask(self, call: Callable[[], Awaitable[T]], otherwise: Callable[[str], T]) -> T:
        """Return what a call gives, or what stands for it where the actor is gone."""
        try:
            return await call()
        except RayActorError as error:
            self.is_lost = True
            return otherwise(str(error).strip().splitlines()[0])

    @staticmethod
    def _down(why: str) -> Down:
        return Down(kind=None, reason=f"went with its actor ({why})")


class Placement:
    """The replicas' places on the cluster; held until it is given back."""

    def __init__(
        self, cluster: Cluster, config: VllmConfig, *, device: str, log_dir: Path, is_local: bool
    ) -> None:
        """Reserve the GPUs.

        Args:
            cluster: that is up.
            config: the programmer's section.
            device: `cpu` or `cuda`, that the servers run on.
            log_dir: where the servers' output goes, on each node.
            is_local: whether the cluster is this host alone: servers listen on it alone too.

        Raises:
            ConfigError: no nodes have so many GPUs.
        """
        self._cluster = cluster
        self._config = config
        self._device = device
        self._log_dir = log_dir
        self._is_local = is_local
        self._group: Any = None
        if device == "cuda":
            pool = config.vllm
            _check_gpus(_gpus_of_nodes(), replicas=pool.replicas, each=pool.tensor_parallel)
            bundles = [{"GPU": pool.tensor_parallel}] * pool.replicas
            self._group = placement_group(bundles, strategy="PACK")

    def hire(self, number: int) -> RemoteReplica:
        """Start the actor of a replica; it waits for its GPUs where they are in use."""
        options = self._cluster.options("programmer")
        if self._group is not None:
            options |= {
                "num_gpus": self._config.vllm.tensor_parallel,
                "resources": {},
                "num_cpus": 0,
                "scheduling_strategy": PlacementGroupSchedulingStrategy(
                    placement_group=self._group, placement_group_bundle_index=number
                ),
            }
        remote = ray.remote(LocatedReplica).options(**options)
        return RemoteReplica(
            remote.remote(
                self._config,
                number=number,
                host="127.0.0.1" if self._is_local else "",
                device=self._device,
                log_dir=str(self._log_dir),
            )
        )

    def give_back(self) -> None:
        """Let the GPUs go."""
        if self._group is not None:
            remove_placement_group(self._group)


class LocatedReplica(Replica):
    """A replica that listens where the cluster finds it."""

    def __init__(
        self, config: VllmConfig, *, number: int, host: str, device: str, log_dir: str
    ) -> None:
        """Take the order; an empty host is the node's address in the cluster."""
        super().__init__(
            config,
            number=number,
            host=host or ray.util.get_node_ip_address(),
            device=device,
            log_dir=log_dir,
        )


def _gpus_of_nodes() -> list[int]:
    return [int(node["Resources"].get("GPU", 0)) for node in ray.nodes() if node["Alive"]]


def _check_gpus(nodes: list[int], *, replicas: int, each: int) -> None:
    places = sum(gpus // each for gpus in nodes)
    if places < replicas:
        raise ConfigError(
            f"conf programmer.vllm: expected {replicas} place(s) of {each} GPU(s) on one node, "
            f"found {places} (GPUs of the nodes: {', '.join(map(str, nodes)) or 'none'}); lower "
            "programmer.vllm.replicas or tensor_parallel, or take programmer.vllm.device=cpu"
        )
