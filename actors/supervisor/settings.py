"""What every child of a problem is told, whatever its role: device, threads, flags, dtype."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kopt.actors.child.memory import available_bytes
from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.zygote import Zygote
from kopt.ladder import LADDERS
from kopt.problem import Problem

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
        child = Child(
            self.zygote,
            settings=self._settings(problem),
            cache_dir=self.cache_dir,
            memory_bytes=self.memory_bytes,
            build_dir=build_dir,
            keeps_builds=keeps_builds,
        )
        try:
            child.open()
        except BaseException:
            child.end()
            raise
        return child

    def _settings(self, problem: Problem) -> dict[str, Any]:
        ladder = LADDERS[self.config.ladder]
        return {
            "device": self.device,
            "num_threads": self.num_threads,
            "matmul_tf32": ladder.matmul_tf32,
            "cudnn_tf32": ladder.cudnn_tf32,
            "module_mode": self.config.module_mode,
            "dtype": problem.dtype,
        }


def memory_limit(config: EvaluateConfig, *, device: DeviceName) -> int:
    """Return the bytes of host memory that a child may use."""
    if config.memory_gib is not None:
        return int(config.memory_gib * (1 << 30))
    return int(MEMORY_SHARE[device] * available_bytes())
