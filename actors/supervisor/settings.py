"""What every child of a problem is told, whatever its role: device, threads, flags, dtype."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kopt.actors.child.host_memory import available_bytes
from kopt.actors.child.preload import Preload
from kopt.actors.child.tensor_spec import Place
from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.evidence.device_lock import device_lock
from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.turns import Hold, Stopped, Turns
from kopt.actors.supervisor.warm import WarmChildren
from kopt.actors.supervisor.zygote import Zygote
from kopt.actors.supervisor.zygote_start import start_zygote
from kopt.ladder import LADDERS
from kopt.problem import Problem

_LOG = logging.getLogger(__name__)
MEMORY_SHARE: dict[DeviceName, float] = {"cpu": 0.5, "cuda": 0.75}
"""Of the host memory available when the supervisor starts, for one child. On CUDA more is counted
than is used: the driver's and torch's own buffers are memory that could be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where children are made: one supervisor's device, zygote and cache."""

    zygote: Zygote
    device: DeviceName
    config: EvaluateConfig
    cache_dir: Path
    num_threads: int
    memory_bytes: int
    """Host memory of one child."""
    turns: Turns = field(default_factory=Turns)
    """Of the device."""
    warm: WarmChildren | None = None
    """Children forked ahead, for candidates; None forks each when it is needed."""
    exchange: Place = "cpu"
    """Where the tensors lie that are exchanged with children."""
    device_name: str = ""
    """The GPU's name, or the CPU's model, where times are kept under it."""

    def child(
        self, problem: Problem, *, build_dir: Path | None = None, keeps_builds: bool = False
    ) -> Child:
        """Fork a child for a problem and open its device.

        Args:
            problem: for its dtype.
            build_dir: the candidate's folder of builds; None for the reference.
            keeps_builds: what the child adds to that folder stays.

        Raises:
            ChildFailed: the device cannot be opened.
            WorkerLost: the zygote is gone.
        """
        if build_dir is not None and not keeps_builds and self.warm is not None:
            ready = self.warm.take(dtype=problem.dtype, build_dir=build_dir)
            if ready is not None:
                return ready
        return _opened(
            Child(
                self.zygote,
                settings=self._settings(dtype=problem.dtype),
                cache_dir=self.cache_dir,
                memory_bytes=self.memory_bytes,
                build_dir=build_dir,
                keeps_builds=keeps_builds,
                turns=self.turns,
                is_trusted=build_dir is None,
            )
        )

    def child_ahead(self) -> Child:
        """Fork a child for a candidate that is not known yet, and open its device.

        Raises:
            ChildFailed: the device cannot be opened.
            WorkerLost: the zygote is gone.
        """
        return _opened(
            Child(
                self.zygote,
                settings=self._settings(dtype=None),
                cache_dir=self.cache_dir,
                memory_bytes=self.memory_bytes,
                is_ahead=True,
                turns=self.turns,
            )
        )

    @contextmanager
    def alone(self, mine: Hold | None = None) -> Iterator[Stopped]:
        """Have the device alone: of this supervisor's threads, and of the node's other processes.

        Args:
            mine: as `Turns.exclusive`.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(device_lock(self.cache_dir, device=self.device))
            except OSError as error:
                _LOG.warning("timed without the lock between processes: %s", error)
            yield stack.enter_context(self.turns.exclusive(mine))

    def _settings(self, *, dtype: str | None) -> dict[str, Any]:
        ladder = LADDERS[self.config.ladder]
        return {
            "device": self.device,
            "exchange": self.exchange,
            "num_threads": self.num_threads,
            "matmul_tf32": ladder.matmul_tf32,
            "cudnn_tf32": ladder.cudnn_tf32,
            "module_mode": self.config.module_mode,
            "dtype": dtype,
        }


def open_bench(
    config: EvaluateConfig,
    *,
    device: DeviceName,
    cache_dir: Path,
    memory_as: DeviceName | None = None,
    compiles: bool = False,
    observes: bool = False,
    arch: str = "",
    zygote: Zygote | None = None,
) -> Bench:
    """Start a zygote, for children on this process's cores; no device is touched.

    Args:
        config: how candidates are judged.
        device: of the children.
        cache_dir: kopt's cache on this node.
        memory_as: device whose share of the host's memory a child may use; None: its own.
        compiles: whether children compile the reference, or trace it.
        observes: whether children profile.
        arch: of the GPU that children use or compile for; empty for none.
        zygote: that was started already, for the same; None starts one.
    """
    num_threads = len(os.sched_getaffinity(0))
    preload = Preload(compiles=compiles, observes=observes, arch=arch, uses_device=device == "cuda")
    return Bench(
        zygote=zygote or start_zygote(preload, cache_dir=cache_dir),
        device=device,
        config=config,
        cache_dir=cache_dir,
        num_threads=num_threads,
        memory_bytes=memory_limit(config, device=memory_as or device),
    )


def _opened(child: Child) -> Child:
    try:
        child.open()
    except BaseException:
        child.end()
        raise
    return child


def memory_limit(config: EvaluateConfig, *, device: DeviceName) -> int:
    """Return the bytes of host memory that a child may use."""
    if config.memory_gib is not None:
        return int(config.memory_gib * (1 << 30))
    return int(MEMORY_SHARE[device] * available_bytes())
