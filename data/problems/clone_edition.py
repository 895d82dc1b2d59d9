"""KernelBench from a git clone: its files as they lie, or as they are at a revision."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from kopt.data.problems.edition import (
    FOLDER,
    LEVELS,
    PROBLEM_FILE,
    URL,
    Edition,
    Entry,
    edition_of,
)
from kopt.data.problems.file_source import decode_source, read_source
from kopt.data.problems.git_objects import (
    list_blobs,
    read_blobs,
    require_repository,
    resolve_commit,
)
from kopt.data.problems.revision import folder_revision
from kopt.environment import KERNELBENCH_VARIABLE
from kopt.errors import ConfigError

REVISIONS = {
    "v0": "6500bbc8cf102520d7a8f09be34ee6d5db1c29b0",
    "v0.1": "129232ea3c4cfa05c2dd5473bdb935d6246dc84b",
    "v0.2": "b6c52595fbb7980b6082e75cb5b208a15a5d8eca",
}
"""The project's releases and their commits; it tags none of them.

`v0` (2025-07-04) and `v0.1` (2025-07-21) are its branches of these names, which the README's
Versions section links. `v0.2` is package version 0.2.0.dev0: the commit of `main` that last changed
a problem (2026-01-19; the problems are the same at its head of 2026-03-05).
"""
HOW = f"clone {URL} and set problems.kernelbench.path or {KERNELBENCH_VARIABLE} to it"


def open_clone(path: str | None, *, revision: str | None) -> Edition:
    """Return the edition of a clone.

    Args:
        path: of the clone, or of the KernelBench folder within; a bare repository is read at HEAD.
        revision: a key of REVISIONS, a commit, tag or branch; None reads the files as they lie.

    Raises:
        ConfigError: there is no clone, or it does not have the revision.
    """
    if path is None:
        raise ConfigError(
            f"no clone of KernelBench is named; {HOW}, or set problems.kernelbench.dataset"
        )
    root = _root(Path(path).expanduser())
    if root is None:
        raise ConfigError(f"no {FOLDER}/level1 in {path}; {HOW}")
    if revision is not None:
        return _at_commit(root, revision)
    return _as_it_lies(root) if (root / FOLDER / "level1").is_dir() else _at_commit(root, "HEAD")


def _root(path: Path) -> Path | None:
    """The checkout's root; the path may name it or the KernelBench folder within."""
    for root in (path, path.parent):
        if (root / FOLDER / "level1").is_dir() and path in (root, root / FOLDER):
            return root
    return path if _is_bare(path) else None


def _is_bare(path: Path) -> bool:
    """Whether it looks like a repository without its files: bare, or with nothing checked out."""
    return (path / ".git").exists() or (path / "HEAD").is_file()


def _as_it_lies(root: Path) -> Edition:
    found = [
        (match, path)
        for path in sorted((root / FOLDER).glob("level*/*.py"))
        if (match := PROBLEM_FILE.fullmatch(path.relative_to(root).as_posix()))
    ]
    listed = [path for match, path in found if int(match["level"]) in LEVELS]
    return edition_of(
        (_entry(match, read=partial(read_source, path)) for match, path in found),
        revision=folder_revision(root, files=listed, under=FOLDER),
        where=str(root / FOLDER),
    )


def _at_commit(root: Path, revision: str) -> Edition:
    try:
        require_repository(root)
    except ConfigError as error:
        raise ConfigError(
            f"problems.kernelbench.revision={revision} is read from a git clone, and {error}; "
            f"clone {URL}, or leave the revision out"
        ) from None
    commit = resolve_commit(root, revision, known=REVISIONS)
    blobs = list_blobs(root, commit, under=FOLDER)
    found = [(match, blob) for blob in blobs if (match := PROBLEM_FILE.fullmatch(blob.path))]

    @cache
    def texts() -> dict[str, bytes]:
        return read_blobs(root, [blob for _, blob in found])

    def read(path: str) -> str:
        return decode_source(texts()[path], where=f"{path} of {revision}")

    return edition_of(
        (_entry(match, read=partial(read, blob.path)) for match, blob in found),
        revision=_label(revision, commit),
        where=f"commit {commit[:12]} of {root}",
    )


def _entry(match: re.Match[str], *, read: Callable[[], str]) -> Entry:
    return Entry(level=int(match["level"]), number=int(match["number"]), where=match[0], read=read)


def _label(revision: str, commit: str) -> str:
    """The name that was asked for, beside the commit; a commit's own id says no more than it."""
    plain = revision == "HEAD" or commit.startswith(revision)
    return commit if plain else f"{revision} {commit}"
