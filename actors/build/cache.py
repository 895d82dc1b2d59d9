"""The cache of builds: a folder for each key, whole or not there, and no more bytes than allowed.

A build holds absolute paths, so it is made where it stays, under its key's lock. Its manifest, with
the checksum of every file, is written aside and renamed in last: without a manifest that fits, a
folder is what a killed builder left, and is made again. Whoever wants a key that is being built
waits for its lock, which goes with its holder however that one ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_LOG = logging.getLogger(__name__)
MAX_BYTES = 8 << 30
"""Kept of builds on a node: some thousands."""
IN_USE_S = 1_800.0
"""A build that was asked for within this time is kept whatever it takes: a device may be about to
load it."""
LEAST_FREE_BYTES = 256 << 20
"""With less than this free, a build is not begun here."""
_MANIFEST = ".built"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key's folder, held under its lock."""

    folder: Path
    is_whole: bool
    """It was built, and nothing in it has changed since; otherwise it is empty."""


class BuildCache:
    """Builds of one node below one folder; any number of processes may share it."""

    def __init__(self, root: Path, *, max_bytes: int = MAX_BYTES) -> None:
        """Use a folder, which need not exist."""
        self._root = root
        self._max_bytes = max_bytes
        self._unpruned_bytes = max_bytes  # the first build looks at what others left

    def folder(self, key: str) -> Path:
        """Return where a key's build lies."""
        return self._root / key[:2] / key

    @contextmanager
    def entry(self, key: str) -> Iterator[Entry]:
        """Hold a key: its build, or an empty folder to build in and then `keep` or `drop`.

        Raises:
            OSError: the folder cannot be made, for want of space or of rights.
        """
        folder = self.folder(key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.with_suffix(".lock")):
            is_whole = _is_whole(folder)
            if is_whole:
                os.utime(folder / _MANIFEST)
            else:
                shutil.rmtree(folder, ignore_errors=True)
                if not _has_room(folder.parent):
                    self.prune(now_s=time.time(), max_bytes=self._max_bytes // 2)
                if not _has_room(folder.parent):
                    raise OSError(f"{self._root} has less than {LEAST_FREE_BYTES >> 20} MiB free")
                folder.mkdir()
            yield Entry(folder=folder, is_whole=is_whole)

    def keep(self, entry: Entry) -> None:
        """Mark a build as whole; then make room, if it is time to.

        Raises:
            OSError: the disk is full; the build can be used, but will be made again.
        """
        files = {
            str(path.relative_to(entry.folder)): _checksum(path) for path in _files(entry.folder)
        }
        taken = sum(path.stat().st_size for path in _files(entry.folder))
        manifest = {"version": _VERSION, "bytes": taken, "files": files}
        aside = entry.folder / f"{_MANIFEST}.new"
        aside.write_text(json.dumps(manifest), encoding="utf-8")
        os.replace(aside, entry.folder / _MANIFEST)
        self._unpruned_bytes += taken
        if self._unpruned_bytes > self._max_bytes // 20:
            self._unpruned_bytes = 0
            self.prune(now_s=time.time())

    def drop(self, entry: Entry) -> None:
        """Remove what did not build."""
        shutil.rmtree(entry.folder, ignore_errors=True)

    def num_bytes(self) -> int:
        """Return the bytes of all builds that are whole."""
        return sum(taken for _, taken, _ in self._builds())

    def prune(self, *, now_s: float, max_bytes: int | None = None) -> int:
        """Remove builds, those asked for longest ago first, until the rest fits.

        Args:
            now_s: time of day; what was asked for shortly before stays.
            max_bytes: of what may stay; None for the bound of the cache, 0 clears it.

        Returns:
            The bytes removed.
        """
        limit = self._max_bytes if max_bytes is None else max_bytes
        builds = sorted(self._builds())
        excess = sum(taken for _, taken, _ in builds) - limit
        removed = 0
        for used_s, taken, folder in builds:
            if removed >= excess or used_s > now_s - IN_USE_S:
                break
            with suppress(OSError), _locked(folder.with_suffix(".lock"), waits=False) as lock:
                shutil.rmtree(folder)
                Path(lock.name).unlink()
                removed += taken
        return removed

    def _builds(self) -> list[tuple[float, int, Path]]:
        """Return when each build was asked for last, its bytes and its folder."""
        found = []
        for manifest in self._root.glob(f"*/*/{_MANIFEST}"):
            with suppress(OSError, ValueError, KeyError, TypeError):
                taken = int(json.loads(manifest.read_text(encoding="utf-8"))["bytes"])
                found.append((manifest.stat().st_mtime, taken, manifest.parent))
        return found


def _is_whole(folder: Path) -> bool:
    """Whether a folder holds what its manifest says; a word in the log where it was damaged."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if manifest["version"] != _VERSION:
            return False
        files = dict(manifest["files"])
        if all(_checksum(folder / name) == checksum for name, checksum in files.items()):
            return True
    except FileNotFoundError:
        if not (folder / _MANIFEST).exists():
            return False
    except (OSError, ValueError, KeyError, TypeError):
        pass
    _LOG.warning("the build in %s is damaged: it is made again", folder)
    return False


def _has_room(folder: Path) -> bool:
    return shutil.disk_usage(folder).free >= LEAST_FREE_BYTES


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and not path.name.startswith(_MANIFEST)
    )


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _locked(path: Path, *, waits: bool = True) -> Iterator[IO[str]]:
    """Hold a lock that its holder may remove: a waiter then takes the new one.

    Raises:
        OSError: somebody holds it, and we do not wait.
    """
    how = fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB)
    while True:
        with path.open("w") as lock:
            fcntl.flock(lock, how)
            with suppress(FileNotFoundError):
                if os.stat(path).st_ino == os.fstat(lock.fileno()).st_ino:
                    yield lock
                    return
