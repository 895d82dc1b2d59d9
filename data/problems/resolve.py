"""From what a user asked for to problems: exact names, globs over a set, and files."""

from __future__ import annotations

import difflib
import glob
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.contract import contract_errors
from kopt.data.problems.file_source import load_file
from kopt.data.problems.source import SOURCES, ProblemSource
from kopt.errors import ConfigError
from kopt.problem import Problem

GLOB_CHARACTERS = frozenset("*?[")
CLOSE_MATCHES = 3


def resolve(patterns: Sequence[str], config: ProblemsConfig) -> list[Problem]:
    """Return the problems that the patterns name, each once, in the order asked.

    A pattern is a name (`builtin/softmax`), a glob over names (`kernelbench/level1/*`), or a
    path that ends in `.py`, which may be a glob too. Problems of a glob come in their set's order.

    Raises:
        ConfigError: a pattern names nothing (the text has close matches), a set is not here, a
            file cannot be read, or two different files would go by one name.
    """
    sources = open_sources(config)
    found: dict[str, Problem] = {}
    for pattern in patterns:
        for problem in _matching(pattern, sources, config):
            known = found.setdefault(problem.name, problem)
            if known.problem_id != problem.problem_id:
                raise ConfigError(
                    f"two different problems would be named {problem.name!r}; rename one file"
                )
    if not found:
        raise ConfigError("no problem is asked for; set problem=builtin/softmax or the like")
    return list(found.values())


def open_sources(config: ProblemsConfig) -> dict[str, ProblemSource]:
    """Return every set by name, those of other packages included; nothing is read yet."""
    return {name: SOURCES.create(name, config) for name in SOURCES.names()}


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


def _matching(
    pattern: str, sources: dict[str, ProblemSource], config: ProblemsConfig
) -> list[Problem]:
    if pattern.endswith(".py"):
        return [load_file(path, config=config) for path in _files(pattern)]
    owner = _owner(pattern, sources)
    if owner is None:
        raise ConfigError(_unknown(pattern, sources))
    source = sources[owner]
    if (reason := source.missing()) is not None:
        raise ConfigError(f"problem {pattern!r}: {reason}")
    inner = pattern.removeprefix(f"{owner}/")
    names = source.names()
    if inner in names:
        return [source.load(inner)]
    chosen = [name for name in names if fnmatchcase(name, inner)]
    if not chosen:
        raise ConfigError(_unknown(pattern, sources))
    return [source.load(name) for name in chosen]


def _files(pattern: str) -> list[Path]:
    path = Path(pattern).expanduser()
    if path.exists() or GLOB_CHARACTERS.isdisjoint(pattern):
        return [path]
    found = sorted(glob.glob(str(path), recursive=True))
    if not found:
        raise ConfigError(f"no file matches {pattern!r} (looked for in {Path.cwd()})")
    return [Path(name) for name in found]


def _owner(pattern: str, sources: dict[str, ProblemSource]) -> str | None:
    """The set that a pattern is in; the longest name wins, since sets may have `/` in theirs."""
    owners = [name for name in sources if pattern.startswith(f"{name}/")]
    return max(owners, key=len, default=None)


def _unknown(pattern: str, sources: dict[str, ProblemSource]) -> str:
    names = [f"{owner}/{name}" for owner, source in sources.items() for name in source.names()]
    close = difflib.get_close_matches(pattern, names, n=CLOSE_MATCHES, cutoff=0.6)
    if not close:
        wanted = pattern.rsplit("/", 1)[-1]
        close = [name for name in names if wanted and wanted in name][:CLOSE_MATCHES]
    if Path(f"{pattern}.py").is_file():
        close.insert(0, f"{pattern}.py")
    folder = f"{pattern.rstrip('/')}/"
    if any(name.startswith(folder) for name in names):
        close.insert(0, f"{folder}*")
    hint = f"did you mean {', '.join(close)}?" if close else "`kopt problems` lists them"
    return f"unknown problem {pattern!r}; {hint}"
