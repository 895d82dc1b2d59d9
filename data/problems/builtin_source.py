"""The sets that ship with kopt: `builtin`, `production` and `tutorial`."""

from __future__ import annotations

from importlib.resources import files
from typing import ClassVar

from kopt.data.lint import builtin_table
from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.family import family_of
from kopt.data.problems.file_source import text_form
from kopt.data.problems.source import SOURCES
from kopt.problem import Problem
from kopt.version import __version__

SUFFIX = ".py"


class ShippedSource:
    """One problem a file of a package of kopt.data.problems."""

    set_name: ClassVar[str]
    """Of the set, and of its package."""

    def __init__(self, config: ProblemsConfig) -> None:
        self._config = config
        self._folder = files(f"kopt.data.problems.{self.set_name}")

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
        full_name = f"{self.set_name}/{name}"
        text = (self._folder / f"{name}{SUFFIX}").read_text(encoding="utf-8")
        form = text_form(text, where=full_name, config=self._config)
        linted = builtin_table().get(full_name)
        return Problem(
            name=full_name,
            source=form.source,
            given=form.given,
            dtype=self._config.dtype,
            family=family_of(form.source),
            revision=f"kopt {__version__}",
            licence="Apache-2.0",
            degenerate="" if linted is None else linted.degenerate,
        )


@SOURCES.register("builtin")
class BuiltinSource(ShippedSource):
    """Problems of the size of a CPU, of every kind."""

    set_name = "builtin"


@SOURCES.register("production")
class ProductionSource(ShippedSource):
    """Kernels of training and serving, each with the Triton kernel that is to be beaten.

    The MoE weight gradient of KernelPro's App. H and the six inference kernels of its App. C.3.
    """

    set_name = "production"


@SOURCES.register("tutorial")
class TutorialSource(ShippedSource):
    """Well-tuned kernels to start from, ten in Triton and ten in Helion (KernelOPT §6.1)."""

    set_name = "tutorial"
