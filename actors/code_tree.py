"""Which tree of kopt's code this process runs: the driver and all workers must run one."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import kopt

DIGITS = 12


@cache
def code_tree() -> str:
    """Return a digest of the package's sources: paths and contents, in order.

    Links are followed: an editable install and a wheel of the same tree are alike.
    """
    root = Path(kopt.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(_sources(root), key=lambda path: path.relative_to(root).as_posix()):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:DIGITS]


def _sources(folder: Path) -> list[Path]:
    found: list[Path] = []
    for path in folder.iterdir():  # not rglob: it does not follow links
        if path.is_dir() and path.name != "__pycache__":
            found += _sources(path)
        elif path.suffix == ".py":
            found.append(path)
    return found
