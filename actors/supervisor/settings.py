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

CPU_MEMORY_SHARE = 0.5
"""Of the memory available when the supervisor starts, for one child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where children are made: one supervisor's device, zygote and cache."""

    zygote: Zygote
    device: DeviceName
    config: EvaluateConfig
    cache_dir: Path
    num_threads: int
    memory_bytes: int | None

    def child(self, problem: Problem, *, build_dir: Path | None = None) -> Child:
        """Fork a child for a problem and open its device.

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


def memory_limit(config: EvaluateConfig, *, device: DeviceName) -> int | None:
    """Return the bytes a child may map; None on CUDA, whose contexts map far more than memory."""
    if device == "cuda":
        return None
    if config.memory_gib is not None:
        return int(config.memory_gib * (1 << 30))
    return int(CPU_MEMORY_SHARE * available_bytes())
