"""The manifest of an entry: each file with its checksum, written last: whole means whole."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = ".built"
VERSION = 1
"""Of the manifest and of how files lie; entries of another version are made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a store knows of an entry that is whole, without reading it."""

    folder: Path
    num_bytes: int
    made_s: float
    """Seconds since the epoch."""
    used_s: float
    """When it was asked for last; the same clock."""


def write_manifest(folder: Path, *, made_s: float) -> int:
    """Write the manifest of what a folder holds, links apart, and return the bytes of it.

    Raises:
        OSError: the disk is full.
    """
    files = {str(path.relative_to(folder)): _checksum(path) for path in _files(folder)}
    taken = sum(path.stat().st_size for path in _files(folder))
    manifest = {"version": VERSION, "bytes": taken, "made_s": made_s, "files": files}
    aside = folder / f"{MANIFEST}.new"
    aside.write_text(json.dumps(manifest), encoding="utf-8")
    os.replace(aside, folder / MANIFEST)
    return taken


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return a folder's manifest, of whatever version; None where it has none.

    Raises:
        OSError, ValueError, KeyError, TypeError: it cannot be read, or is no manifest.
    """
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    manifest: dict[str, Any] = json.loads(text)
    int(manifest["version"])
    return manifest


def read_kept(path: Path) -> Kept | None:
    """Return what a manifest says of its entry; None where it says nothing."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        used_s = path.stat().st_mtime
        return Kept(
            folder=path.parent,
            num_bytes=int(manifest["bytes"]),
            made_s=float(manifest.get("made_s", used_s)),
            used_s=used_s,
        )
    return None


def fits(folder: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether a folder holds what its manifest says.

    Raises:
        OSError, ValueError, KeyError, TypeError, AttributeError: a file is missing, or the manifest
            is none.
    """
    files = dict(manifest["files"])
    return all(_checksum(folder / name) == checksum for name, checksum in files.items())


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and not path.name.startswith(MANIFEST)
    )


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
