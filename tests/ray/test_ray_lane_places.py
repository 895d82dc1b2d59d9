"""Places of a lane whose actors cannot come up yet, or are not to be lent: others serve."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

import pytest
import ray

from kopt.actors.cluster import Cluster, open_cluster
from kopt.actors.config import ClusterConfig
from kopt.actors.lanes import ActorLane
from kopt.errors import WorkerLost

pytestmark = [pytest.mark.ray, pytest.mark.slow]


class Clerk:
    """Says who it is."""

    def __init__(self, number: int) -> None:
        self.number = number

    def number_here(self) -> int:
        return self.number

    def die(self) -> None:
        os._exit(1)


class Suspicious:
    """A ward that trusts no worker of some numbers."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = set(numbers)
        self.losses: list[int] = []

    async def admit(self, number: int, actor: object) -> bool:
        return number not in self.numbers

    def answered(self, number: int, answer: object) -> bool:
        return number not in self.numbers

    def lost(self, number: int, why: str) -> None:
        self.losses.append(number)


@pytest.fixture(scope="module")
def cluster(running_ray) -> Iterator[Cluster]:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with open_cluster(ClusterConfig(address=running_ray.address), device="cpu") as opened:
        yield opened
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def lane_of(
    cluster: Cluster, *, size: int, started: int, nowhere: tuple[int, ...] = (), ward=None
) -> ActorLane:
    """A lane whose actors of some numbers ask for a machine that is not there."""

    def start(number: int) -> object:
        options = cluster.options("verify")
        if number in nowhere:
            options["resources"] = {"a_machine_that_left": 1}
        return ray.remote(Clerk).options(**options).remote(number)

    return ActorLane(
        "verify", start, size=size, max_retries=1, limit_s=120.0, started=started, ward=ward
    )


def test_a_place_without_a_machine_holds_no_call_up(cluster) -> None:
    async def scenario() -> list[int]:
        lane = lane_of(cluster, size=3, started=1, nowhere=(1, 2))
        try:
            answers = await asyncio.gather(*(lane.call("number_here") for _ in range(6)))
            return [number for number, _ in answers]
        finally:
            lane.close()

    assert asyncio.run(scenario()) == [0] * 6


def test_a_lane_that_grows_serves_those_that_wait(cluster) -> None:
    async def scenario() -> list[int]:
        lane = lane_of(cluster, size=1, started=0, nowhere=(0,))
        calls = [asyncio.create_task(lane.call("number_here")) for _ in range(2)]
        try:
            await asyncio.wait(calls, timeout=0.5)
            lane.grow(2)
            return [number for number, _ in await asyncio.gather(*calls)]
        finally:
            lane.close()

    assert asyncio.run(scenario()) == [1, 1]


def test_a_worker_that_is_not_trusted_is_lent_no_more_and_none_left_is_said(cluster) -> None:
    async def scenario() -> list[int]:
        lane = lane_of(cluster, size=2, started=2, ward=Suspicious(0))
        try:
            answers = [await lane.call("number_here") for _ in range(4)]
            lane.give_up(1)
            with pytest.raises(WorkerLost, match="none of its workers is to be trusted"):
                await lane.call("number_here")
            return [number for number, _ in answers]
        finally:
            lane.close()

    # Its first answer is when the ward finds out; whoever asked has it.
    assert asyncio.run(scenario()) == [0, 1, 1, 1]


def test_a_call_that_kills_every_worker_counts_against_one_of_them_once(cluster) -> None:
    ward = Suspicious()

    async def scenario() -> int:
        lane = lane_of(cluster, size=1, started=1, ward=ward)
        try:
            with pytest.raises(WorkerLost, match="died"):
                await lane.call("die")
            return (await lane.call("number_here"))[0]
        finally:
            lane.close()

    assert asyncio.run(scenario()) == 0
    assert ward.losses == [0]
