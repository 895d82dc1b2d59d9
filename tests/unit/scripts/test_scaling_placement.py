"""A vLLM pool beside device workers, on GPUs that are only pretended: nobody gets another's."""

import asyncio
import os
import sys

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


def test_half_of_the_gpus_serve_a_pool_and_the_others_time_candidates(tmp_path):
    fake = FakeVllm(folder=tmp_path / "env").make()
    config = VllmConfig(
        model=str(fake.model),
        vllm=PoolConfig(python=str(fake.python), replicas=1, tensor_parallel=2),
    )
    cluster = Cluster(
        device="cuda",
        devices=2,
        devices_here=2,
        build_workers=1,
        programmer_workers=1,
        lanes=frozenset(),
    )

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

    ray.init(
        address="local",
        num_cpus=2,
        num_gpus=4,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100_000_000,
    )
    try:
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        seen = asyncio.run(scenario())
    finally:
        ray.shutdown()
    assert config.reserved_gpus("cuda") == 2
    (served,) = [str(each["gpus"]).split(",") for each in fake.requests()]
    assert [len(gpus) for gpus in (served, *seen)] == [2, 1, 1]
    assert sorted([*served, *seen[0], *seen[1]]) == ["0", "1", "2", "3"]
