"""The problem sources' section of the configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from kopt.data.problems.sizes import Sizes
from kopt.environment import kernelbench_clone
from kopt.plugin_kind import PluginKind
from kopt.problem import Dtype
from kopt.section import Section

SetName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""Of a set of the user's own: `mine` in `mine/softmax`."""


class KernelBenchConfig(Section):
    """Where KernelBench is read from, and which revision of it."""

    path: str | None = Field(default_factory=kernelbench_clone)
    """A git clone, bare ones too; the environment's KOPT_KERNELBENCH unless set, None where there
    is none."""
    dataset: str | None = None
    """Read the data set in place of a clone: a folder with its Parquet files, or its id on
    the Hugging Face hub (`ScalingIntelligence/KernelBench`), which is not asked otherwise."""
    revision: str | None = Field(default=None, pattern=r"^[^-\s]\S*$")
    """`v0`, `v0.1`, `v0.2`, or any commit, tag or branch; None reads a clone's files as they lie,
    and the data set's `main`."""


class ProblemsConfig(Section):
    """How problems are read."""

    dtype: Dtype | None = None
    """Cast floating tensors of every problem to it; None keeps them as each problem makes them."""
    sizes: Sizes = "full"
    """`small` takes the sizes that a file names in its constant SMALL, to check a problem where its
    own do not fit; figures of it say nothing of the problem."""
    kernelbench: KernelBenchConfig = Field(default_factory=KernelBenchConfig)
    sources: dict[SetName, PluginKind] = Field(default_factory=dict)
    """Sets of your own that a program makes: name to `path/to/mine.py:NAME`, a ProblemSource."""
    folders: dict[SetName, str] = Field(default_factory=dict)
    """Sets of your own: name to the folder that its problem files lie in, at any depth."""
