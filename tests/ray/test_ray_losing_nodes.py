"""A fleet on machines that die, join, fall silent or differ: nothing is lost or doubled."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kopt.actors.cluster import open_cluster
from kopt.actors.config import ClusterConfig
from kopt.testing.losing_cluster import GPUS_PER_NODE, LosingCluster, new_cluster
from kopt.testing.losing_fleet import Account, lose_now_and_then, run_fleet_on

pytestmark = [pytest.mark.ray, pytest.mark.slow]

BUDGET = 300
"""15 searches of 20."""
NUM_EVENTS = 90
"""In the journal, when the trouble begins: some verdicts are there, and others in flight."""


@pytest.fixture
def machines() -> Iterator[LosingCluster]:
    with LosingCluster(nodes=4) as cluster:
        yield cluster


def once_under_way(act: Callable[[], None]) -> Callable[[Callable[[], int]], None]:
    """Trouble, one time: when the first verdicts are there, and others in flight."""

    def trouble(events: Callable[[], int]) -> None:
        while 0 <= events() < NUM_EVENTS:
            time.sleep(0.05)  # for processes; what is tested does not depend on how long
        act()

    return trouble


def run(
    machines: LosingCluster,
    folder: Path,
    trouble: Callable[[Callable[[], int]], None],
    *,
    pace_s: float = 0.3,
    searches: int = 15,
    devices: int | None = None,
) -> Account:
    return run_fleet_on(
        machines.address,
        folder,
        searches=searches,
        candidates=20,
        pace_s=pace_s,
        trouble=trouble,
        devices=devices,
    )


def test_nodes_that_are_killed_one_after_the_other_lose_nothing_and_double_nothing(
    machines, tmp_path
) -> None:
    rng = random.Random(0)

    def lose_two() -> None:
        for _ in range(2):
            machines.lose(rng)
            machines.join()
        (tmp_path / "pace").write_text("0.05")  # what is left may be quick

    account = run(machines, tmp_path, once_under_way(lose_two), pace_s=2.0)
    assert machines.killed == 2
    assert (account.candidates, account.lost, account.duplicates) == (BUDGET, 0, 0)
    # What was in flight on a machine that was lost, and no more: a candidate for each GPU.
    assert 1 <= account.repeated <= machines.killed * GPUS_PER_NODE


@pytest.mark.soak
def test_a_node_killed_every_ten_seconds_costs_a_fleet_of_2000_candidates_nothing(
    machines, tmp_path
) -> None:
    trouble = lose_now_and_then(machines.lose, machines.join_all, every_s=10.0)
    # Eight devices: two minutes and more, whatever the host.
    account = run(machines, tmp_path, trouble, pace_s=0.5, searches=100)
    assert machines.killed >= 5
    assert (account.candidates, account.lost, account.duplicates) == (2_000, 0, 0)
    assert account.repeated <= machines.killed * GPUS_PER_NODE


@pytest.mark.soak
def test_nodes_that_leave_for_good_leave_the_work_to_those_that_stay(machines, tmp_path) -> None:
    rng = random.Random(1)

    def lose_most() -> None:
        for _ in range(3):
            machines.lose(rng)

    account = run(machines, tmp_path, once_under_way(lose_most))
    assert (account.candidates, account.lost, account.duplicates) == (BUDGET, 0, 0)


@pytest.mark.soak
def test_a_node_that_falls_silent_is_given_up_and_its_work_done_elsewhere(
    machines, tmp_path
) -> None:
    rng = random.Random(2)
    account = run(machines, tmp_path, once_under_way(lambda: machines.cut_off(rng)))
    assert (account.candidates, account.lost, account.duplicates) == (BUDGET, 0, 0)


def test_candidates_are_timed_on_one_kind_of_gpu_that_joiners_share() -> None:
    with LosingCluster(nodes=2, kind="H200") as machines:
        machines.join(kind="A100")
        config = ClusterConfig(address=machines.address)
        with open_cluster(config, device="cuda") as cluster:
            assert cluster.gpu_kind == "H200"
            assert (cluster.devices, cluster.devices_here) == (2 * GPUS_PER_NODE,) * 2
            assert cluster.other_gpus == GPUS_PER_NODE
            assert cluster.options("timing")["accelerator_type"] == "H200"
            assert "accelerator_type" not in cluster.options("build")
            before = cluster.devices_now()
            machines.join(kind="A100")
            assert cluster.devices_now() == before
            machines.join()
            assert cluster.devices_now() == before + GPUS_PER_NODE


@pytest.mark.soak
def test_a_fleet_does_not_wait_for_devices_that_are_to_join_and_uses_them_when_they_do(
    tmp_path,
) -> None:
    with LosingCluster(nodes=1) as machines:

        def join() -> None:
            machines.join()

        account = run(machines, tmp_path, once_under_way(join), devices=2 * GPUS_PER_NODE)
        assert (account.candidates, account.lost, account.duplicates) == (BUDGET, 0, 0)
        assert account.devices == 2 * GPUS_PER_NODE


def test_a_cluster_starts_on_a_host_where_ray_never_ran(monkeypatch, tmp_path) -> None:
    nowhere = tmp_path / "none" / "yet"
    monkeypatch.setenv("RAY_TMPDIR", str(nowhere))
    seen = []

    def start(**arguments) -> None:
        seen.append((nowhere / "ray").is_dir())  # where Ray notes the address
        assert arguments["head_node_args"]["temp_dir"] == "short"

    monkeypatch.setattr("ray.cluster_utils.Cluster", start)
    new_cluster("short", num_cpus=0)
    assert seen == [True]
