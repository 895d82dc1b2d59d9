"""The set `kernelbench`: a local clone of ScalingIntelligence/KernelBench, levels 1 to 3.

Level 4 needs weights from a model hub and casts token ids to floats: it cannot run as written
(its own harness refuses it too), so it is not listed.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.family import family_of
from kopt.data.problems.file_source import read_source
from kopt.data.problems.revision import folder_revision
from kopt.data.problems.source import SOURCES
from kopt.environment import KERNELBENCH_VARIABLE
from kopt.problem import Problem

LEVELS = (1, 2, 3)
FOLDER = "KernelBench"
URL = "https://github.com/ScalingIntelligence/KernelBench"
FILE_NAME = re.compile(r"(\d+)_.*\.py")


@SOURCES.register("kernelbench")
class KernelBenchSource:
    """`level2/18` is KernelBench/level2/18_*.py of the clone."""

    def __init__(self, config: ProblemsConfig) -> None:
        self._config = config

    def missing(self) -> str | None:
        """Return where a clone was looked for and how to name one, or None where it is there."""
        path = self._config.kernelbench.path
        how = f"clone {URL} and set problems.kernelbench.path or {KERNELBENCH_VARIABLE} to it"
        if path is None:
            return f"no clone of KernelBench is named; {how}"
        if self._root is None:
            return f"no {FOLDER}/level1 in {path}; {how}"
        return None

    def names(self) -> list[str]:
        """Return `level1/1` … in the order of levels and ids."""
        return list(self._paths)

    def load(self, name: str) -> Problem:
        """Read one file of the clone; its revision is the clone's commit."""
        source = read_source(self._paths[name])
        return Problem(
            name=f"kernelbench/{name}",
            source=source,
            dtype=self._config.dtype,
            family=family_of(source),
            revision=self._revision,
            licence="MIT",
        )

    @cached_property
    def _root(self) -> Path | None:
        """The checkout's root; the path may name it or the KernelBench folder within."""
        if self._config.kernelbench.path is None:
            return None
        path = Path(self._config.kernelbench.path).expanduser()
        for root in (path, path.parent):
            if (root / FOLDER / "level1").is_dir() and path in (root, root / FOLDER):
                return root
        return None

    @cached_property
    def _paths(self) -> dict[str, Path]:
        if self._root is None:
            return {}
        found: dict[str, Path] = {}
        for level in LEVELS:
            numbered = [
                (int(match[1]), path)
                for path in (self._root / FOLDER / f"level{level}").glob("*.py")
                if (match := FILE_NAME.fullmatch(path.name))
            ]
            for number, path in sorted(numbered):
                found[f"level{level}/{number}"] = path
        return found

    @cached_property
    def _revision(self) -> str:
        assert self._root is not None, "a problem was loaded from a clone that is not there"
        return folder_revision(self._root, files=self._paths.values(), under=FOLDER)
