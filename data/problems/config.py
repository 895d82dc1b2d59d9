"""The problem sources' section of the configuration."""

from __future__ import annotations

from pydantic import Field

from kopt.environment import kernelbench_clone
from kopt.problem import Dtype
from kopt.section import Section


class KernelBenchConfig(Section):
    """Where KernelBench is."""

    path: str | None = Field(default_factory=kernelbench_clone)
    """A local clone; the environment's KOPT_KERNELBENCH unless set, None where there is none."""


class ProblemsConfig(Section):
    """How problems are read."""

    dtype: Dtype | None = None
    """Cast floating tensors of every problem to it; None keeps them as each problem makes them."""
    kernelbench: KernelBenchConfig = Field(default_factory=KernelBenchConfig)
