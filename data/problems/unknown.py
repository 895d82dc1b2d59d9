"""What to say of a pattern that names no problem: what it may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from kopt.data.problems.source import ProblemSource

CLOSE_MATCHES = 3


def unknown_problem(
    pattern: str, sources: Mapping[str, ProblemSource], *, owner: str | None = None
) -> str:
    """Return one line on a pattern that names nothing.

    Args:
        pattern: what the user asked for.
        sources: every set.
        owner: the set that the pattern is in; None where it is in none, and then sets that are
            configured, but not here, are looked through as well.
    """
    owned = {owner: sources[owner]} if owner is not None else sources
    names = [f"{set_name}/{name}" for set_name, one in owned.items() for name in one.names()]
    close = [*_paths_meant(pattern, owner), *_close(pattern, names)]
    folder = f"{pattern.rstrip('/')}/"
    if any(name.startswith(folder) for name in names):
        close.insert(0, f"{folder}*")
    if close:
        return f"unknown problem {pattern!r}; did you mean {', '.join(close)}?"
    return f"unknown problem {pattern!r}; {_what_there_is(pattern, names, sources, owner)}"


def _close(pattern: str, names: list[str]) -> list[str]:
    """Names nearest to a pattern: in its own folder first, then anywhere."""
    folder, _, last = pattern.rpartition("/")
    siblings = {
        name.removeprefix(f"{folder}/"): name
        for name in names
        if folder and name.rpartition("/")[0] == folder
    }
    if siblings:
        if last.isdecimal():
            return []  # digits in common do not make ids alike
        close = difflib.get_close_matches(last, siblings, n=CLOSE_MATCHES)
        return [siblings[name] for name in close]
    close = difflib.get_close_matches(pattern, names, n=CLOSE_MATCHES)
    if last.isdecimal():
        return close
    return close or [name for name in names if last and last in name][:CLOSE_MATCHES]


def _paths_meant(pattern: str, owner: str | None) -> list[str]:
    """Paths of this folder that a pattern names but for how it is written."""
    meant = [f"{pattern}.py"] if Path(f"{pattern}.py").is_file() else []
    if owner is not None and Path(pattern).is_dir():
        meant.append(f"./{pattern}")
    return meant


def _what_there_is(
    pattern: str, names: list[str], sources: Mapping[str, ProblemSource], owner: str | None
) -> str:
    """The part of the pattern that is known, and what is below it."""
    if owner is None:
        first = pattern.partition("/")[0]
        close = difflib.get_close_matches(first, list(sources), n=1)
        hint = f"did you mean {close[0]}/…? " if close and "/" in pattern else ""
        return f"{hint}sets: {', '.join(sources)}; a file ends in .py; `kopt problems` lists them"
    folder = pattern.rpartition("/")[0]
    siblings = [name for name in names if name.startswith(f"{folder}/")]
    if siblings and folder != owner:
        return f"{folder} has {len(siblings)}: {siblings[0]} to {siblings[-1]}"
    inner = [name.removeprefix(f"{owner}/").rpartition("/")[0] for name in names]
    folders = [f"{owner}/{folder}/…" for folder in dict.fromkeys(inner) if folder]
    what = ", ".join(folders) or f"{len(names)} problems"
    return f"{owner} has {what}; `kopt problems '{owner}/*'` lists them"
