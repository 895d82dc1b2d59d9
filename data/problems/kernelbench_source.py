"""The set `kernelbench`: ScalingIntelligence/KernelBench, from a git clone or its data set."""

from __future__ import annotations

from functools import cached_property

from kopt.data.problems.clone_edition import open_clone
from kopt.data.problems.config import KernelBenchConfig, ProblemsConfig
from kopt.data.problems.dataset_edition import open_dataset
from kopt.data.problems.edition import Edition
from kopt.data.problems.family import family_of
from kopt.data.problems.source import SOURCES
from kopt.errors import ConfigError
from kopt.problem import Problem


@SOURCES.register("kernelbench")
class KernelBenchSource:
    """`level2/18` is KernelBench/level2/18_*.py of a clone, or level 2's problem 18 of the data."""

    def __init__(self, config: ProblemsConfig) -> None:
        self._config = config

    def missing(self) -> str | None:
        """Return why it cannot be read and what to do, or None where it can be.

        A data set on the hub is asked for by this; where none is named, nothing leaves the machine.
        """
        return self._opened if isinstance(self._opened, str) else None

    def names(self) -> list[str]:
        """Return `level1/1` … in the order of levels and ids."""
        return [] if isinstance(self._opened, str) else list(self._opened.texts)

    def load(self, name: str) -> Problem:
        """Read one problem; its revision is the edition's."""
        edition = self._opened
        assert not isinstance(edition, str), "a problem was loaded from a set that is not here"
        source = edition.texts[name]()
        return Problem(
            name=f"kernelbench/{name}",
            source=source,
            dtype=self._config.dtype,
            family=family_of(source),
            revision=edition.revision,
            licence="MIT",
        )

    @cached_property
    def _opened(self) -> Edition | str:
        """The edition, or why there is none: an attempt to reach the hub is not made twice."""
        try:
            return _open(self._config.kernelbench)
        except ConfigError as error:
            return str(error)


def _open(config: KernelBenchConfig) -> Edition:
    if config.dataset is not None:
        return open_dataset(config.dataset, revision=config.revision)
    return open_clone(config.path, revision=config.revision)
