"""The set `builtin`: the files that ship with kopt."""

from __future__ import annotations

from importlib.resources import files

from kopt.data.lint import builtin_table
from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.family import family_of
from kopt.data.problems.source import SOURCES
from kopt.problem import Problem
from kopt.version import __version__

PACKAGE = "kopt.data.problems.builtin"
SUFFIX = ".py"


@SOURCES.register("builtin")
class BuiltinSource:
    """One problem a file of the package kopt.data.problems.builtin; CPU-sized."""

    def __init__(self, config: ProblemsConfig) -> None:
        self._config = config
        self._folder = files(PACKAGE)

    def missing(self) -> str | None:
        """Return None: the files are part of the package."""
        return None

    def names(self) -> list[str]:
        """Return the files' stems, in alphabetical order."""
        found = (item.name for item in self._folder.iterdir())
        return sorted(
            name.removesuffix(SUFFIX)
            for name in found
            if name.endswith(SUFFIX) and not name.startswith("_")
        )

    def load(self, name: str) -> Problem:
        """Read one file of the package."""
        source = (self._folder / f"{name}{SUFFIX}").read_text(encoding="utf-8")
        linted = builtin_table().get(f"builtin/{name}")
        return Problem(
            name=f"builtin/{name}",
            source=source,
            dtype=self._config.dtype,
            family=family_of(source),
            revision=f"kopt {__version__}",
            licence="Apache-2.0",
            degenerate="" if linted is None else linted.degenerate,
        )
