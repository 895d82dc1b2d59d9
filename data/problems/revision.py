"""The revision of a folder of problems: its git commit, or a digest of what it holds."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

GIT_TIMEOUT_S = 5.0
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def folder_revision(root: Path, *, files: Iterable[Path], under: str) -> str:
    """Return the revision of some files of a folder.

    The commit that is checked out, with `-dirty` where git sees changes below `under`; without a
    git folder, `sha256:` and 16 hex digits over the files' names and bytes.

    Args:
        root: the checkout's root.
        files: what the digest is over; each lies below root.
        under: folder within root that changes are looked for in, such as `KernelBench`.
    """
    commit = checked_out_commit(root)
    if commit is None:
        return _digest(root, files)
    return f"{commit}-dirty" if _has_changes(root, under=under) else commit


def checked_out_commit(root: Path) -> str | None:
    """Return the commit (40 or 64 hex digits) of a checkout, read without running git.

    Worktrees, submodules (`.git` is a file) and packed refs are followed; None where `root` is
    not a checkout or has no commit yet.
    """
    try:
        git = root / ".git"
        if git.is_file():
            git = (root / git.read_text().removeprefix("gitdir:").strip()).resolve()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref:"):
            return head if COMMIT.fullmatch(head) else None
        reference = head.removeprefix("ref:").strip()
        common = git / "commondir"
        shared = (git / common.read_text().strip()).resolve() if common.is_file() else git
        return _loose(git, reference) or _loose(shared, reference) or _packed(shared, reference)
    except (OSError, UnicodeDecodeError):
        return None


def _loose(git: Path, reference: str) -> str | None:
    path = git / reference
    return path.read_text().strip() if path.is_file() else None


def _packed(git: Path, reference: str) -> str | None:
    path = git / "packed-refs"
    if not path.is_file():
        return None
    for line in path.read_text().splitlines():
        commit, _, name = line.partition(" ")
        if name == reference and COMMIT.fullmatch(commit):
            return commit
    return None


def _has_changes(root: Path, *, under: str) -> bool:
    """Ask git; where git is absent or refuses the folder, nothing is claimed."""
    command = ["git", "-C", str(root), "status", "--porcelain", "--", under]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and bool(answer.stdout.strip())


def _digest(root: Path, files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(files):
        name, data = str(path.relative_to(root)).encode(), path.read_bytes()
        total.update(b"%d:%s%d:" % (len(name), name, len(data)))
        total.update(data)
    return f"sha256:{total.hexdigest()[:16]}"
