"""From what a user asked for to problems: exact names, globs over a set, files and folders."""

from __future__ import annotations

import glob
import logging
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.contract import contract_errors
from kopt.data.problems.file_source import FILE_SUFFIXES, load_file
from kopt.data.problems.folder_source import FolderSource
from kopt.data.problems.source import SOURCES, ProblemSource
from kopt.data.problems.unknown import unknown_problem
from kopt.errors import ConfigError
from kopt.problem import Problem

GLOB_CHARACTERS = frozenset("*?[")

_LOG = logging.getLogger(__name__)


class Selection(NamedTuple):
    """What patterns name."""

    problems: list[Problem]
    """Each once, in the order asked."""
    skipped: list[str]
    """A line for each file of a folder that is no problem."""


def resolve(patterns: Sequence[str], config: ProblemsConfig) -> list[Problem]:
    """Return the problems of `select`; each skipped file is a warning in the log.

    Raises:
        ConfigError: as `select`.
    """
    selection = select(patterns, config)
    for line in selection.skipped:
        _LOG.warning("skipped: %s", line)
    return selection.problems


def select(patterns: Sequence[str], config: ProblemsConfig) -> Selection:
    """Return the problems that the patterns name, each once, in the order asked.

    A pattern is a name (`builtin/softmax`), a glob over names (`kernelbench/level1/*`), a path
    that ends in `.py` or `.cu`, or a folder, of which every problem file is taken; paths may be
    globs too. Names of sets go before paths: `./builtin/x` is a path for sure. Problems of a glob
    or a folder come in their set's order.

    Raises:
        ConfigError: a pattern names nothing (the text has close matches), a set is not here, a
            file cannot be read, or two different files would go by one name.
    """
    sources = open_sources(config)
    found: dict[str, Problem] = {}
    skipped: list[str] = []
    for pattern in patterns:
        selection = _matching(pattern, sources, config)
        skipped += selection.skipped
        for problem in selection.problems:
            known = found.setdefault(problem.name, problem)
            if known.problem_id != problem.problem_id:
                raise ConfigError(
                    f"two different problems would be named {problem.name!r}; rename one file"
                )
    if not found:
        raise ConfigError("no problem is asked for; set problem=builtin/softmax or the like")
    return Selection(list(found.values()), list(dict.fromkeys(skipped)))


def open_sources(config: ProblemsConfig) -> dict[str, ProblemSource]:
    """Return every set by name: ours, other packages', the user's folders. Nothing is read yet.

    Raises:
        ConfigError: a folder or a source is named like another set, or its file does not run.
    """
    sources = {name: SOURCES.create(name, config) for name in SOURCES.names()}
    for name, part in config.sources.items():
        if name in sources:
            raise ConfigError(f"problems.sources.{name}: there is a set of that name; rename it")
        sources[name] = SOURCES.create(part, config)
    for name, folder in config.folders.items():
        if name in sources:
            raise ConfigError(f"problems.folders.{name}: there is a set of that name; rename it")
        sources[name] = FolderSource(name, Path(folder).expanduser(), config)
    return sources


def check_contracts(problems: Sequence[Problem]) -> None:
    """Refuse problems whose text breaks KernelBench's contract.

    Raises:
        ConfigError: one line for each fault of each problem.
    """
    lines = [
        f"problem {problem.name}: {line}"
        for problem in problems
        for line in contract_errors(problem.source)
    ]
    if lines:
        raise ConfigError("\n".join(lines))


def _matching(pattern: str, sources: dict[str, ProblemSource], config: ProblemsConfig) -> Selection:
    if pattern.endswith(FILE_SUFFIXES):
        return _of_paths(_files(pattern), config)
    owner = _owner(pattern, sources)
    if owner is None:
        paths = _folders(pattern)
        if not paths:
            raise ConfigError(unknown_problem(pattern, sources))
        return _of_paths(paths, config)
    source = sources[owner]
    if (reason := source.missing()) is not None:
        raise ConfigError(f"problem {pattern!r}: {reason}")
    inner = pattern.removeprefix(f"{owner}/")
    names = source.names()
    if inner in names:
        return Selection([source.load(inner)], [])
    chosen = [name for name in names if fnmatchcase(name, inner)]
    if not chosen:
        raise ConfigError(unknown_problem(pattern, sources, owner=owner))
    skipped = source.skipped if isinstance(source, FolderSource) else []
    return Selection([source.load(name) for name in chosen], skipped)


def _of_paths(paths: Sequence[Path], config: ProblemsConfig) -> Selection:
    """The problems of files, and of folders under the folders' names.

    Raises:
        ConfigError: a file cannot be read, or a folder holds no problem.
    """
    found = Selection([], [])
    for path in paths:
        if path.suffix in FILE_SUFFIXES:
            found.problems.append(load_file(path, config=config))
            continue
        source = FolderSource(path.resolve().name, path, config)
        if (reason := source.missing()) is not None:
            raise ConfigError(reason)
        found.problems.extend(source.load(name) for name in source.names())
        found.skipped.extend(source.skipped)
    return found


def _files(pattern: str) -> list[Path]:
    path = Path(pattern).expanduser()
    if path.exists() or GLOB_CHARACTERS.isdisjoint(pattern):
        return [path]
    found = _glob(path)
    if not found:
        raise ConfigError(f"no file matches {pattern!r} (looked for in {Path.cwd()})")
    return found


def _folders(pattern: str) -> list[Path]:
    """The folder of that path; of a glob, every folder and Python file."""
    path = Path(pattern).expanduser()
    if path.is_dir():
        return [path]
    if GLOB_CHARACTERS.isdisjoint(pattern):
        return []
    return [path for path in _glob(path) if path.is_dir() or path.suffix in FILE_SUFFIXES]


def _glob(path: Path) -> list[Path]:
    return [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]


def _owner(pattern: str, sources: dict[str, ProblemSource]) -> str | None:
    """The set that a pattern is in; the longest name wins, since sets may have `/` in theirs."""
    owners = [name for name in sources if pattern.startswith(f"{name}/")]
    return max(owners, key=len, default=None)
