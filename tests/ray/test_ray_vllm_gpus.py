"""A vLLM pool, alone and beside device workers, on GPUs that are only pretended.

Which ones a server sees is Ray's doing all the same: nobody gets another's.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from kopt.actors.cluster import Cluster
from kopt.actors.programmers.vllm.placing import Placement
from kopt.actors.programmers.vllm.replica import Up
from kopt.actors.programmers.vllm_config import PoolConfig, VllmConfig
from kopt.testing.fake_vllm import FakeVllm

pytestmark = [pytest.mark.ray, pytest.mark.slow]


class Sees:
    """Stands where a device worker stands, and says which GPUs it sees."""

    def gpus(self) -> list[str]:
        return os.environ["CUDA_VISIBLE_DEVICES"].split(",")


@pytest.fixture(scope="module", autouse=True)
def four_gpus() -> Iterator[None]:
    """A Ray that takes this host to have four GPUs."""
    ray.init(
        address="local",
        num_cpus=2,
        num_gpus=4,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100_000_000,
    )
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    ray.shutdown()


def cluster_of(*, devices: int) -> Cluster:
    return Cluster(
        device="cuda",
        devices=devices,
        devices_here=devices,
        build_workers=1,
        programmer_workers=1,
        lanes=frozenset(),
    )


def config_of(fake: FakeVllm, *, replicas: int) -> VllmConfig:
    return VllmConfig(
        model=str(fake.model),
        vllm=PoolConfig(python=str(fake.python), replicas=replicas, tensor_parallel=2),
    )


def test_servers_get_their_gpus_from_ray_and_no_two_the_same(tmp_path: Path) -> None:
    fake = FakeVllm(folder=tmp_path / "env").make()
    config = config_of(fake, replicas=2)

    async def scenario() -> None:
        placement = Placement(
            cluster_of(devices=0), config, device="cuda", log_dir=tmp_path / "logs", is_local=True
        )
        posts = [placement.hire(number) for number in range(2)]
        ups = await asyncio.gather(*(post.start() for post in posts))
        assert all(isinstance(up, Up) for up in ups), ups
        for post in posts:
            await post.stop(1.0)
            post.discard()
        placement.give_back()

    asyncio.run(scenario())
    seen = [str(each["gpus"]).split(",") for each in fake.requests()]
    assert sorted(map(len, seen)) == [2, 2]
    assert sorted(seen[0] + seen[1]) == ["0", "1", "2", "3"]


def test_half_of_the_gpus_serve_a_pool_and_the_others_time_candidates(tmp_path: Path) -> None:
    fake = FakeVllm(folder=tmp_path / "env").make()
    config = config_of(fake, replicas=1)
    cluster = cluster_of(devices=2)

    async def scenario() -> list[list[str]]:
        placement = Placement(
            cluster, config, device="cuda", log_dir=tmp_path / "logs", is_local=True
        )
        post = placement.hire(0)
        workers = [
            ray.remote(Sees).options(**cluster.options("timing")).remote()
            for _ in range(cluster.devices)
        ]
        up, *seen = await asyncio.gather(
            post.start(), *(worker.gpus.remote() for worker in workers)
        )
        assert isinstance(up, Up), up
        await post.stop(1.0)
        post.discard()
        placement.give_back()
        return seen

    seen = asyncio.run(scenario())
    assert config.reserved_gpus("cuda") == 2
    (served,) = [str(each["gpus"]).split(",") for each in fake.requests()]
    assert [len(gpus) for gpus in (served, *seen)] == [2, 1, 1]
    assert sorted([*served, *seen[0], *seen[1]]) == ["0", "1", "2", "3"]
