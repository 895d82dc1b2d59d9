"""What the hosts of a cluster say of themselves, asked through Ray."""

from __future__ import annotations

import asyncio

import pytest
import ray
from ray.cluster_utils import Cluster

from kopt.actors.cache.facts import host_facts, judging_facts

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def test_every_node_is_asked_and_equal_ones_are_named_once(running_ray: Cluster) -> None:
    added = running_ray.add_node(num_cpus=1, object_store_memory=80_000_000)
    try:
        ray.init(address=running_ray.address, log_to_driver=False)
        assert sum(node["Alive"] for node in ray.nodes()) == 2
        # Both are this host, and the second is asked by a process of Ray's there.
        assert asyncio.run(judging_facts("cpu")) == [host_facts("cpu")]
        with pytest.raises(OSError, match="no host of the cluster can judge"):
            asyncio.run(judging_facts("cuda"))  # no node has a GPU
    finally:
        ray.shutdown()
        running_ray.remove_node(added)
