"""The problem sources' section of the configuration."""

from __future__ import annotations

import os

from pydantic import Field

from kopt.problem import Dtype
from kopt.section import Section

KERNELBENCH_VARIABLE = "KOPT_KERNELBENCH"


class KernelBenchConfig(Section):
    """Where KernelBench is."""

    path: str | None = Field(default_factory=lambda: os.environ.get(KERNELBENCH_VARIABLE) or None)
    """A local clone; the environment's KOPT_KERNELBENCH unless set, None where there is none."""


class ProblemsConfig(Section):
    """How problems are read."""

    dtype: Dtype | None = None
    """Cast floating tensors of every problem to it; None keeps them as each problem makes them."""
    kernelbench: KernelBenchConfig = Field(default_factory=KernelBenchConfig)
