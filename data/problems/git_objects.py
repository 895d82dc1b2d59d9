"""What a git repository holds at a commit, read from its objects: no checkout, no work tree."""

from __future__ import annotations

import difflib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kopt.errors import ConfigError

TIMEOUT_S = 60.0
"""Of one git command; a few megabytes are read."""
ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
"""Variables that point git away from the folder it is given; a git hook sets them."""
CLOSE_MATCHES = 3
SHOWN_NAMES = 8


class Blob(NamedTuple):
    """A file of a commit."""

    path: str
    """Relative to the repository's root, with `/`."""
    object_id: str


def require_repository(root: Path) -> None:
    """Check that a folder is the root of a checkout, or a bare repository.

    Raises:
        ConfigError: it is neither, or git refuses it (its own words are in the text).
    """
    answer = _git(root, "rev-parse", "--is-bare-repository", "--is-inside-git-dir", "--show-cdup")
    bare, inside, *up = answer.decode().splitlines()
    if bare != "true" and (inside == "true" or "".join(up)):
        raise ConfigError(f"git cannot read {root}: it is not the root of a repository")


def resolve_commit(root: Path, revision: str, *, known: Mapping[str, str]) -> str:
    """Return the commit that a revision names.

    The repository's own names go first (a tag, a branch, a commit or the start of one), then
    branches of its remotes, which a fresh clone has only there, then `known`.

    Args:
        root: of a checkout, or a bare repository.
        revision: what the user named.
        known: names to commits, for those that the repository itself does not name.

    Raises:
        ConfigError: nothing of it names a commit that is here; the text has close matches.
    """
    names = [revision, *_remote_branches(root, revision)]
    if revision in known:
        names.append(known[revision])
    for name in names:
        found = _git(
            root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", may_fail=True
        ).strip()
        if found:
            return found.decode()
    if revision in known:
        raise ConfigError(
            f"{root}: {revision} is commit {known[revision][:12]}, which this clone does not have; "
            "fetch it (a shallow clone lacks history), or clone anew"
        )
    raise ConfigError(f"{root}: no revision {revision!r}; {_hint(root, revision, known)}")


def list_blobs(root: Path, commit: str, *, under: str) -> list[Blob]:
    """Return the files of a commit below a folder, links and submodules left out.

    Raises:
        ConfigError: git cannot read the tree.
    """
    listing = _git(root, "ls-tree", "-r", "-z", "--full-tree", commit, "--", f"{under}/")
    found = []
    for line in listing.decode("utf-8", errors="surrogateescape").split("\0"):
        fields, _, path = line.partition("\t")
        if fields.startswith("100"):  # a plain file's mode; 120000 is a link, 160000 a submodule
            found.append(Blob(path=path, object_id=fields.split()[2]))
    return found


def read_blobs(root: Path, blobs: list[Blob]) -> dict[str, bytes]:
    """Return path to bytes of some files, by one process for all of them.

    Raises:
        ConfigError: git cannot read one of them.
    """
    asked = "".join(f"{blob.object_id}\n" for blob in blobs).encode()
    answer = _git(root, "cat-file", "--batch", stdin=asked)
    found: dict[str, bytes] = {}
    place = 0
    for blob in blobs:
        header_end = answer.find(b"\n", place)
        header = answer[place:header_end].split()
        if header_end < 0 or len(header) != 3 or header[1] != b"blob":
            raise ConfigError(f"{root}: git does not have the text of {blob.path}; fetch it anew")
        start = header_end + 1
        end = start + int(header[2])
        found[blob.path] = answer[start:end]
        place = end + 1
    return found


def _remote_branches(root: Path, name: str) -> list[str]:
    listing = _git(root, "for-each-ref", "--format=%(refname)", f"refs/remotes/*/{name}")
    return listing.decode().split()


def _hint(root: Path, revision: str, known: Mapping[str, str]) -> str:
    listing = _git(
        root, "for-each-ref", "--format=%(refname:short)", "refs/tags", "refs/heads", may_fail=True
    )
    names = list(dict.fromkeys([*known, *listing.decode(errors="replace").split()]))
    close = difflib.get_close_matches(revision, names, n=CLOSE_MATCHES)
    if close:
        return f"did you mean {', '.join(close)}?"
    more = ", …" if len(names) > SHOWN_NAMES else ""
    return f"there are: {', '.join(names[:SHOWN_NAMES])}{more}, and any commit"


def _git(root: Path, *arguments: str, stdin: bytes = b"", may_fail: bool = False) -> bytes:
    """Run git on a folder; return what it prints.

    Raises:
        ConfigError: git is not installed, takes too long, or fails where it may not.
    """
    environment = {key: value for key, value in os.environ.items() if key not in ELSEWHERE}
    environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments],
            input=stdin,
            capture_output=True,
            env=environment,
            timeout=TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise ConfigError(
            f"git is not installed, and a revision of {root} is read by it; install git"
        ) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"git cannot read {root}: {error}") from None
    if answer.returncode != 0 and not may_fail:
        lines = answer.stderr.decode(errors="replace").strip().splitlines()
        why = lines[0] if lines else f"exit code {answer.returncode}"
        raise ConfigError(f"git cannot read {root}: {why}")
    return answer.stdout
