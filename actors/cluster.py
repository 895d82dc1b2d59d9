"""The Ray cluster: started here or joined, its lanes declared, its noise kept off the console.

Ray's surprises that are handled (each seen on 2.60): the memory monitor counts the whole host and
retries what it kills without end; worker deaths are printed on stdout whatever the log settings;
a stray RAY_ADDRESS decides where `ray.init` goes unless an address is given; socket paths longer
than 107 bytes fail; its own SIGTERM handler takes the place of ours.
"""

from __future__ import annotations

import functools
import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import ray

from kopt.actors.config import ClusterConfig
from kopt.actors.descendants import descendants, kill_all
from kopt.errors import ConfigError, KoptError

Lane = Literal["programmer", "build", "verify", "timing", "profile"]

_LOG = logging.getLogger(__name__)

ACCELERATOR = "accelerator_type:"
"""What Ray's resource begins with that names the kind of a node's GPUs."""

_ENVIRONMENT = {
    "RAY_task_oom_retries": "0",  # the caller hears of the first kill
    "RAY_memory_usage_threshold": "0.98",  # other programs' memory is not ours to die for
    "RAY_AUTH_MODE": "disabled",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_DOCKER_CPU_WARNING": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster that is up: what it has, and which device our workers will use."""

    device: Literal["cpu", "cuda"]
    devices: int
    """Device workers, at most: as many as there are devices, unless the user says how many."""
    devices_here: int
    """Of them, those whose device is there now. The others wait for nodes to join, or have a
    cluster that grows by itself (`ray up`) bring them."""
    build_workers: int
    """Builds at a time."""
    builds_of_worker: int = 1
    """Those of one build worker: all, where everything is on one node. One process then loads what
    builds need, once, instead of each for itself at the same time."""
    programmer_workers: int
    in_flight: int = 1
    """Candidates on one device at a time."""
    warm_children: int = 0
    """Processes kept ready on each device."""
    sessions: int = 3
    """Problems kept ready on each device."""
    lanes: frozenset[str]
    """Lanes that the nodes declare as resources; others fall back to CPU."""
    gpu_kind: str | None = None
    """Of the GPUs that time candidates, in Ray's word (`H200`); None where nodes do not say."""
    other_gpus: int = 0
    """GPUs of other kinds: nothing is timed on them."""

    def options(self, lane: Lane) -> dict[str, Any]:
        """Return Ray's options of an actor on a lane: its resource, and a GPU where it needs one.

        On a joined cluster whose nodes do not declare the lane, a CPU stands in for it.
        """
        options: dict[str, Any] = {"max_restarts": 0, "max_task_retries": 0, "num_cpus": 0}
        if lane in self.lanes:
            options["resources"] = {lane: 1}
        elif lane in ("build", "programmer"):
            options["num_cpus"] = 1
        if lane == "build":
            options["max_concurrency"] = self.builds_of_worker
        if lane == "timing":
            options["max_concurrency"] = self.in_flight + 1  # one more takes a problem up
            if self.device == "cuda":
                options["num_gpus"] = 1
        if lane in ("timing", "profile") and self.gpu_kind is not None:
            options["accelerator_type"] = self.gpu_kind
        return options

    def devices_now(self) -> int:
        """Return how many devices the living nodes have, the programmer's own among them.

        On a CPU, where one is a device by the user's word alone, those of the start.
        """
        if self.device == "cpu":
            return self.devices
        return _gpus_by_kind().get(self.gpu_kind, 0)


@contextmanager
def open_cluster(
    config: ClusterConfig,
    *,
    device: Literal["auto", "cpu", "cuda"],
    log_dir: Path | None = None,
    reserved_gpus: Callable[[str], int] = lambda device: 0,
) -> Iterator[Cluster]:
    """Start a local Ray or join one, and leave nothing behind of what was started.

    Args:
        config: the cluster's section.
        device: `auto` takes GPUs where the cluster has any.
        log_dir: where Ray's own words about workers go; None drops them.
        reserved_gpus: given the device of candidates, how many GPUs are kept from them.

    Raises:
        ConfigError: the address does not answer, or the device asked for is not there, or none
            is left for candidates.
    """
    scratch = tempfile.TemporaryDirectory(prefix="kr-", dir="/tmp", ignore_cleanup_errors=True)
    with _quiet(log_dir), scratch as folder:
        try:
            with _own_termination(), _own_group():
                if config.address == "local":
                    _start_local(config, device, folder)
                else:
                    _join(config.address)
            yield _describe(config, device, reserved_gpus)
        finally:
            ray.shutdown()


def kill_local() -> None:
    """Kill the Ray that this process started, without waiting for it; nothing if it joined one.

    Ray's own `kill_all_processes` leaves the agents of its raylet alive.
    """
    node: Any = ray._private.worker._global_node
    kill_all(descendants())
    if node is not None and node.head:
        shutil.rmtree(node.get_temp_dir_path(), ignore_errors=True)


@contextmanager
def _own_termination() -> Iterator[None]:
    """Keep what SIGTERM does here: `ray.init` has it print a stack and end the process at once."""
    ours = signal.getsignal(signal.SIGTERM)
    yield
    if ours is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, ours)


@contextmanager
def _own_group() -> Iterator[None]:
    """Have Ray's processes started outside our process group.

    What is sent to the whole group, as `timeout` does, is for the driver: it stops, and them with
    it. Were they gone before it, it would wait a minute for them, and be ended.
    """
    services: Any = ray._private.services
    popen = services.ConsolePopen
    services.ConsolePopen = functools.partial(popen, process_group=0)
    try:
        yield
    finally:
        services.ConsolePopen = popen


def _start_local(config: ClusterConfig, device: str, scratch: str) -> None:
    os.environ.update({key: os.environ.get(key, value) for key, value in _ENVIRONMENT.items()})
    cores = config.num_cpus or len(os.sched_getaffinity(0))
    lanes = dict.fromkeys(("programmer", "build"), 1000)
    lanes |= dict.fromkeys(("verify", "timing", "profile"), config.devices or 64)
    try:
        ray.init(
            address="local",
            num_cpus=cores,
            num_gpus=0 if device == "cpu" else None,
            resources=lanes,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=config.object_store_mb * 1_000_000,
            _temp_dir=scratch,
        )
    except (TypeError, ValueError, AttributeError):
        raise  # a fault of what it was given, or of ours
    except Exception as error:  # Ray raises bare ones where a process of its own is late or dies
        first = " ".join(str(error).split())[:200]
        raise KoptError(
            f"Ray did not start on this machine, for which it waits 30 s: {first}; try again with "
            "fewer programs beside it, or join a cluster that runs (cluster.address=auto)"
        ) from error


def _join(address: str) -> None:
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"cluster.address={address}: no Ray cluster answers there ({first}); "
            "start one with `ray start --head`, or use cluster.address=local"
        ) from error


def _describe(config: ClusterConfig, device: str, reserved_gpus: Callable[[str], int]) -> Cluster:
    resources = ray.cluster_resources()
    by_kind = _gpus_by_kind()
    gpus = sum(by_kind.values())
    cores = int(resources.get("CPU", 1))
    if device == "cuda" and gpus == 0:
        raise ConfigError("device=cuda: the cluster has no GPU; use device=cpu, or see kopt doctor")
    kind: Literal["cpu", "cuda"] = "cuda" if gpus and device != "cpu" else "cpu"
    reserved = reserved_gpus(kind)
    # Of a cluster that was joined there may come to be more.
    wanted = (config.devices or 1) if config.address == "local" else 1
    if kind == "cuda" and reserved + wanted > gpus:
        raise ConfigError(
            f"the cluster has {gpus} GPU(s), expected {reserved} for the programmer and "
            f"{wanted} for candidates; give the programmer fewer, lower "
            "cluster.devices, or take device=cpu"
        )
    # Nodes that do not say what their GPUs are count as one kind; the devices are asked later on.
    gpu_kind = max(by_kind, key=lambda name: (by_kind[name], name or ""), default=None)
    others = gpus - by_kind.get(gpu_kind, 0)
    gpus -= others
    reserved = max(0, reserved - others)
    here = gpus - reserved if kind == "cuda" else (config.devices or 1)
    warm = config.warm_children
    in_flight = config.in_flight or (3 if kind == "cuda" else 1)
    build_workers = config.build_workers or (
        max(1, cores // 2) if kind == "cuda" else min(cores, max(2, cores // 2))
    )
    return Cluster(
        device=kind,
        gpu_kind=gpu_kind if kind == "cuda" else None,
        other_gpus=others if kind == "cuda" else 0,
        in_flight=in_flight,
        warm_children=(in_flight + 1 if kind == "cuda" else 1) if warm is None else warm,
        sessions=config.sessions or (6 if kind == "cuda" else 3),
        devices=config.devices or here,
        devices_here=min(here, config.devices or here),
        build_workers=build_workers,
        builds_of_worker=build_workers if config.address == "local" else 1,
        programmer_workers=config.programmer_workers,
        lanes=frozenset(resources) & {"programmer", "build", "verify", "timing", "profile"},
    )


def _gpus_by_kind() -> dict[str | None, int]:
    """Return the GPUs of the nodes that are alive, by the kind that Ray found them to be."""
    found: dict[str | None, int] = {}
    for node in ray.nodes():
        resources = node["Resources"] if node["Alive"] else {}
        gpus = int(resources.get("GPU", 0))
        if gpus:
            kinds = [name for name in resources if name.startswith(ACCELERATOR)]
            kind = kinds[0].removeprefix(ACCELERATOR) if len(kinds) == 1 else None
            found[kind] = found.get(kind, 0) + gpus
    return found


@contextmanager
def _quiet(log_dir: Path | None) -> Iterator[None]:
    """Send Ray's `(raylet) …` paragraphs to a file: they would land in the middle of our JSON."""
    worker: Any = ray._private.worker
    printed = worker.print_to_stdstream

    def keep(data: dict[str, Any], ignore_prefix: bool = False) -> None:  # noqa: FBT001, FBT002
        lines = [str(line) for line in data.get("lines", [])]
        if log_dir is not None:
            with (log_dir / "ray.log").open("a", encoding="utf-8") as log:
                log.writelines(f"{line}\n" for line in lines)

    worker.print_to_stdstream = keep
    try:
        yield
    finally:
        worker.print_to_stdstream = printed
