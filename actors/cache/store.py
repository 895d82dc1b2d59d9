"""A store of made things: a folder for each key, whole or not there, and bounded in bytes.

Builds, verdicts, baselines and reference outputs are kept alike. What is kept may hold absolute
paths, so it is made where it stays, under its key's lock. Its manifest, with the checksum of every
file, is written aside and renamed in last: without a manifest that fits, a folder is what a killed
maker left, and is made again. Whoever wants a key that is being made waits for its lock, which goes
with its holder however that one ends. Readers of values take no lock: what they read is checked.

Any number of processes may share a store. One that cannot be written is read all the same.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kopt.actors.cache.locks import Claim, locked
from kopt.actors.cache.manifest import (
    MANIFEST,
    VERSION,
    Kept,
    fits,
    read_kept,
    read_manifest,
    write_manifest,
)

_LOG = logging.getLogger(__name__)
_VALUE = "value"
PRUNE_SHARE = 20
"""A store is pruned each time that a twentieth of what it may hold was added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key's folder, held under its lock."""

    folder: Path
    is_whole: bool
    """It was made, and nothing in it has changed since; otherwise it is empty."""


@dataclass(slots=True, kw_only=True)
class Store:
    """The entries of one kind below one folder, which need not exist."""

    root: Path
    kind: str
    """What an entry is, in a word, for log lines: `build`, `verdict`, …."""
    max_bytes: int
    """Kept; more is removed, what was asked for longest ago first."""
    least_free_bytes: int
    """With less than this free on the disk, nothing is begun."""
    in_use_s: float = 0.0
    """An entry that was asked for within this time is kept whatever it takes."""
    _unpruned_bytes: int = -1
    _said: set[str] = field(default_factory=set)

    def folder(self, key: str) -> Path:
        """Return where a key's entry lies."""
        return self.root / key[:2] / key

    @contextmanager
    def entry(self, key: str, *, waits: bool = True) -> Iterator[Entry]:
        """Hold a key: what was made, or an empty folder to make it in and then `keep` or `drop`.

        Args:
            key: 64 hex digits.
            waits: for whoever holds it now.

        Raises:
            BlockingIOError: somebody holds it, and we do not wait.
            OSError: the folder cannot be made, for want of space or of rights.
        """
        folder = self.folder(key)
        if not self._can_write(folder) and self._is_whole(folder):
            yield Entry(folder=folder, is_whole=True)
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_suffix(".lock"), waits=waits):
            is_whole = self._is_whole(folder)
            if is_whole:
                os.utime(folder / MANIFEST)
            else:
                shutil.rmtree(folder, ignore_errors=True)
                if not self._has_room(folder.parent):
                    self.prune(now_s=time.time(), max_bytes=self.max_bytes // 2)
                if not self._has_room(folder.parent):
                    raise OSError(
                        f"{self.root} has less than {self.least_free_bytes >> 20} MiB free"
                    )
                folder.mkdir()
            yield Entry(folder=folder, is_whole=is_whole)

    def keep(self, entry: Entry) -> None:
        """Mark what was made as whole; then make room, if it is time to.

        Raises:
            OSError: the disk is full; what was made can be used, but will be made again.
        """
        taken = write_manifest(entry.folder, made_s=time.time())
        if self._unpruned_bytes < 0:
            self._unpruned_bytes = self.max_bytes  # the first looks at what others left
        self._unpruned_bytes += taken
        if self._unpruned_bytes > self.max_bytes // PRUNE_SHARE:
            self._unpruned_bytes = 0
            self.prune(now_s=time.time())

    def drop(self, entry: Entry) -> None:
        """Remove what could not be made."""
        shutil.rmtree(entry.folder, ignore_errors=True)

    def get(self, key: str) -> bytes | None:
        """Return the value that was put under a key, byte for byte; None where there is none.

        A value that is damaged is none, and a line in the log.
        """
        folder = self.folder(key)
        try:
            manifest = self._manifest(folder)
            if manifest is None:
                return None
            value = (folder / _VALUE).read_bytes()
            if hashlib.sha256(value).hexdigest() == manifest["files"][_VALUE]:
                with suppress(OSError):
                    os.utime(folder / MANIFEST)
                return value
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            if not (folder / MANIFEST).exists():
                return None  # it was removed while we read it
        self._say_damaged(folder)
        return None

    def put(self, key: str, value: bytes) -> None:
        """Keep a value under a key, unless there is one already: equal keys mean equal values.

        Raises:
            OSError: it cannot be kept, for want of space or of rights; nothing half-kept is left.
        """
        with suppress(BlockingIOError), self.entry(key, waits=False) as entry:
            # Whoever holds it is writing the same, or is none of ours: nobody waits for that.
            if entry.is_whole:
                if self.get(key) is not None:
                    return
                shutil.rmtree(entry.folder)
                entry.folder.mkdir()
            try:
                (entry.folder / _VALUE).write_bytes(value)
                self.keep(entry)
            except OSError:
                self.drop(entry)
                raise

    def claim(self, key: str) -> Claim:
        """Say that this process is finding a key's value out, so that others may wait for it.

        A claim protects no file: `put` does that by itself.

        Raises:
            BlockingIOError: somebody else has said so, and still lives.
            OSError: the store cannot be written.
        """
        return Claim(self.folder(key).with_suffix(".claim"))

    def kept(self) -> list[Kept]:
        """Return the entries that are whole as far as their manifests say."""
        found = []
        for path in self.root.glob(f"*/*/{MANIFEST}"):
            about = read_kept(path)
            if about is not None:
                found.append(about)
        return found

    def num_bytes(self) -> int:
        """Return the bytes of all entries that are whole."""
        return sum(each.num_bytes for each in self.kept())

    def prune(self, *, now_s: float, max_bytes: int | None = None) -> int:
        """Remove entries, those asked for longest ago first, until the rest fits.

        What killed makers left goes too. An entry that somebody holds stays.

        Args:
            now_s: time of day; what was asked for within `in_use_s` before stays.
            max_bytes: of what may stay; None for the bound of the store, 0 clears it.

        Returns:
            The bytes removed.
        """
        limit = self.max_bytes if max_bytes is None else max_bytes
        kept = sorted(self.kept(), key=lambda each: (each.used_s, each.folder))
        excess = sum(each.num_bytes for each in kept) - limit
        removed = 0
        for each in kept:
            if removed >= excess or each.used_s > now_s - self.in_use_s:
                break
            if self._remove(each.folder):
                removed += each.num_bytes
        self._sweep(now_s=now_s)
        return removed

    def _sweep(self, *, now_s: float) -> None:
        """Remove folders without a manifest and locks without a folder, unless they are held."""
        for path in self.root.glob("*/*"):
            with suppress(OSError):
                if path.stat().st_mtime > now_s - max(self.in_use_s, 60.0):
                    continue
                if path.suffix == ".claim" or (
                    path.suffix == ".lock" and not path.with_suffix("").exists()
                ):
                    with locked(path, waits=False):
                        path.unlink()
                elif path.is_dir() and not (path / MANIFEST).exists():
                    self._remove(path)

    def _remove(self, folder: Path) -> bool:
        with suppress(OSError), locked(folder.with_suffix(".lock"), waits=False) as lock:
            # The manifest first: what a kill leaves in the middle of this is not whole.
            (folder / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(folder)
            Path(lock.name).unlink()
            return True
        return False

    def _is_whole(self, folder: Path) -> bool:
        """Whether a folder holds what its manifest says; a word in the log where it was damaged."""
        try:
            manifest = self._manifest(folder)
            if manifest is None:
                return False
            if fits(folder, manifest):
                return True
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            if not (folder / MANIFEST).exists():
                return False
        self._say_damaged(folder)
        return False

    def _manifest(self, folder: Path) -> dict[str, Any] | None:
        """Return a folder's manifest; None where it has none, or one of another version.

        Raises:
            OSError, ValueError, KeyError, TypeError: it cannot be read, or is no manifest.
        """
        manifest = read_manifest(folder)
        if manifest is None:
            return None
        if manifest["version"] != VERSION:
            self._say_once(
                f"{self.root} holds {self.kind}s of version {manifest['version']} of the cache, "
                f"not {VERSION}: they are made again when they are asked for"
            )
            return None
        return manifest

    def _can_write(self, folder: Path) -> bool:
        """Whether a lock could be made; where nothing is yet, that is for `mkdir` to say."""
        there = folder.parent
        return not there.exists() or os.access(there, os.W_OK)

    def _has_room(self, folder: Path) -> bool:
        return shutil.disk_usage(folder).free >= self.least_free_bytes

    def _say_damaged(self, folder: Path) -> None:
        _LOG.warning("the %s in %s is damaged: it is made again", self.kind, folder)

    def _say_once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            _LOG.warning("%s", line)
