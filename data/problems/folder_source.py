"""A folder as a set of problems: every Python file in it, at any depth, that defines one."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.contract import undefined
from kopt.data.problems.family import family_of
from kopt.data.problems.file_source import read_source, text_form
from kopt.data.problems.normal import NormalForm
from kopt.data.problems.revision import folder_revision
from kopt.errors import ConfigError
from kopt.problem import Problem

LEFT_OUT = frozenset({"__init__.py", "__pycache__"})
"""Names that are passed over without a word, like those that begin with a dot."""
SHOWN_REASONS = 3


class FolderSource:
    """`norms/rms` is norms/rms.py of the folder.

    A file that defines the contract's names is a problem, right or wrong (`contract_errors` says
    which); any other Python file is left out, and `skipped` says so.
    """

    def __init__(self, name: str, path: Path, config: ProblemsConfig) -> None:
        """Name a set and its folder; nothing is read yet."""
        self._name = name
        self._path = path
        self._config = config

    def missing(self) -> str | None:
        """Return why there is no problem in it, or None where there is one."""
        if not self._path.is_dir():
            found = "a file, not a folder" if self._path.exists() else "not there"
            return f"folder {self._path} is {found} (looked for in {Path.cwd()})"
        if self._texts[0]:
            return None
        if not self._texts[1]:
            return f"folder {self._path} holds no Python file"
        reasons = "; ".join(self._texts[1][:SHOWN_REASONS])
        more = "; …" if len(self._texts[1]) > SHOWN_REASONS else ""
        return f"folder {self._path} holds no problem: {reasons}{more}"

    def names(self) -> list[str]:
        """Return the files' paths within it, without suffix; numbers in order of size."""
        return list(self._texts[0])

    @property
    def skipped(self) -> list[str]:
        """A line for each Python file that is no problem: which, and why."""
        return list(self._texts[1])

    def load(self, name: str) -> Problem:
        """Return one of them; its revision is the folder's commit, or a digest of its problems."""
        source, given, _ = self._texts[0][name]
        return Problem(
            name=f"{self._name}/{name}",
            source=source,
            given=given,
            dtype=self._config.dtype,
            family=family_of(source),
            revision=self._revision,
        )

    @cached_property
    def _texts(self) -> tuple[dict[str, NormalForm], list[str]]:
        """Name to text of the problems; lines on the rest."""
        found: dict[str, NormalForm] = {}
        skipped: list[str] = []
        for path in self._files():
            try:
                form = text_form(read_source(path), where=str(path), config=self._config)
            except ConfigError as error:
                skipped.append(str(error))
                continue
            if (reason := undefined(form.source)) is not None:
                skipped.append(f"{path} is no problem: {reason}")
                continue
            found[path.relative_to(self._path).with_suffix("").as_posix()] = form
        return found, skipped

    def _files(self) -> list[Path]:
        if not self._path.is_dir():
            return []
        inner = {path: path.relative_to(self._path).parts for path in self._path.rglob("*.py")}
        return sorted(
            (
                path
                for path, parts in inner.items()
                if not any(part.startswith(".") or part in LEFT_OUT for part in parts)
            ),
            key=lambda path: _by_size(path.relative_to(self._path).as_posix()),
        )

    @cached_property
    def _revision(self) -> str:
        files = [self._path / f"{name}.py" for name in self._texts[0]]
        return folder_revision(self._path, files=files, under=".")


def _by_size(name: str) -> list[tuple[int, str]]:
    """Sort key under which 2_b comes before 10_a."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
