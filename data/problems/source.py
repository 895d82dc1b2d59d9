"""Problem sources: named sets that problems are read from, open to other packages."""

from __future__ import annotations

from typing import Protocol

from kopt.problem import Problem
from kopt.registry import Registry


class ProblemSource(Protocol):
    """One set of problems. Its factory takes the `ProblemsConfig` and reads nothing yet."""

    def missing(self) -> str | None:
        """Return why the set is not here, with what to do, or None where it can be read.

        This may read the set, and ask for it over the network where the user has configured that.
        """
        ...

    def names(self) -> list[str]:
        """Return the problems' names within the set (`level2/18`), in the set's own order.

        Empty where `missing` gives a reason.
        """
        ...

    def load(self, name: str) -> Problem:
        """Read one problem; `name` is one of `names()`, its dtype is the section's.

        Raises:
            ConfigError: the file cannot be read.
        """
        ...


SOURCES: Registry[ProblemSource] = Registry("problem source", entry_point_group="kopt.problems")
"""Set name (`builtin`) to its factory; another package's sets are named `package/set`."""
