"""Reading a CUTLASS tree within bounds: nothing outside it, no devices, no binaries, no floods.

Paths come from a model. They are resolved on disk, links and all, and must end below the root.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

MAX_FILE_BYTES = 16 << 20
"""Of a file that is read; the largest generated header has 3 MB."""
MAX_READ_LINES = 400
MAX_READ_CHARACTERS = 16_000
MAX_LINE_CHARACTERS = 400
MAX_ENTRIES = 300
"""Of one listing."""
MAX_TREE_FILES = 20_000
MAX_TREE_BYTES = 128 << 20
"""Of a tree's texts that are held and searched."""
MAX_PATH = 400
SUFFIXES = frozenset((".h", ".hpp", ".cuh", ".cu", ".inl", ".cpp", ".cc", ".py", ".md"))
"""Of files that are searched and mined."""
MARK = "include/cute/tensor.hpp"
"""What makes a folder a CUTLASS tree."""


class Refused(Exception):
    """A request to a tool that is not carried out; its text is one line for the model."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind = kind
        """In one word or two, to be counted."""
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A tree with CUTLASS's headers in `include/`."""

    root: Path
    """Resolved."""
    origin: str
    """In words, such as `nvidia-cutlass 4.2.0.0`."""

    @property
    def include(self) -> Path:
        """What goes to a compiler as an include folder."""
        return self.root / "include"

    def read(self, path: str, *, start: int, lines: int) -> str:
        """Return numbered lines of a file.

        Args:
            path: from the root, or as in an `#include`.
            start: first line, from 1.
            lines: how many; MAX_READ_LINES at most.

        Raises:
            Refused: it is no text file in the tree, or has no such line.
        """
        found = self._inside(path)
        try:
            state = found.stat()
            if stat.S_ISDIR(state.st_mode):
                raise Refused("path", f"{path} is a folder: list it with list_cutlass_directory.")
            if not stat.S_ISREG(state.st_mode):
                raise Refused("path", f"{path} is no regular file.")
            if state.st_size > MAX_FILE_BYTES:
                raise Refused("size", f"{path} has {state.st_size:,} bytes: too large to read.")
            data = found.read_bytes()
        except OSError as error:
            raise Refused("path", f"{path} cannot be read: {error.strerror}.") from error
        if b"\0" in data:
            raise Refused("binary", f"{path} is binary.")
        text = data.decode("utf-8", errors="replace").removesuffix("\n").split("\n")
        if not 1 <= start <= len(text):
            raise Refused("lines", f"{path} has lines 1 to {len(text)}, not {start}.")
        wanted = text[start - 1 : start - 1 + max(1, min(lines, MAX_READ_LINES))]
        shown = numbered(wanted, start=start, max_characters=MAX_READ_CHARACTERS)
        last = start + len(shown) - 1
        more = f"; go on from line {last + 1}" if last < len(text) else ""
        head = f"{self._name(found)}, lines {start} to {last} of {len(text)}{more}:"
        return "\n".join([head, *shown])

    def list_folder(self, path: str) -> str:
        """Return what a folder holds: folders with `/`, files with their size.

        Raises:
            Refused: it is no folder in the tree.
        """
        found = self._inside(path)
        try:
            if not found.is_dir():
                raise Refused("path", f"{path} is a file: read it with read_cutlass_file.")
            with os.scandir(found) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError as error:
            raise Refused("path", f"{path} cannot be listed: {error.strerror}.") from error
        lines = [line for entry in entries if (line := self._entry(entry))]
        shown = lines[:MAX_ENTRIES]
        if len(lines) > MAX_ENTRIES:
            shown.append(f"… {len(lines) - MAX_ENTRIES} more")
        return "\n".join([f"{self._name(found)}/ holds:", *(shown or ["nothing"])])

    def texts(self) -> dict[str, str]:
        """Return the tree's texts by path from the root: sources and documents, within bounds."""
        texts: dict[str, str] = {}
        left = MAX_TREE_BYTES
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(each for each in folders if each[0] != "." and each != "build")
            for name in sorted(names):
                path = Path(folder, name)
                data = _text_bytes(path, max_bytes=min(left, MAX_FILE_BYTES))
                if data is None or len(texts) >= MAX_TREE_FILES:
                    continue
                left -= len(data)
                texts[path.relative_to(self.root).as_posix()] = data.decode("utf-8", "replace")
        return texts

    def _inside(self, path: str) -> Path:
        """Return the real place of a path.

        Raises:
            Refused: it is outside, or there is nothing.
        """
        shown = path[:80]
        if not path.isprintable() or len(path) > MAX_PATH:
            raise Refused("path", f"{shown!r} is no path.")
        if path.startswith(("/", "~")) or ".." in Path(path).parts:
            raise Refused(
                "path", f"{shown} is outside: paths go from the tree's root, such as include/cute."
            )
        for base in (self.root, self.include):
            try:
                found = (base / path).resolve(strict=True)
            except (OSError, RuntimeError):  # RuntimeError: links in a circle
                continue
            if not found.is_relative_to(self.root):
                raise Refused("path", f"{shown} leads outside of the tree.")
            return found
        raise Refused("path", f"There is no {shown}; list_cutlass_directory says what there is.")

    def _name(self, found: Path) -> str:
        return found.relative_to(self.root).as_posix()

    def _entry(self, entry: os.DirEntry[str]) -> str:
        """One line of a listing; empty for what is hidden or leads outside."""
        try:
            outside = entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(
                self.root
            )
            if entry.name.startswith(".") or outside:
                return ""
            if entry.is_dir():
                return f"{entry.name}/"
            return f"{entry.name}  {entry.stat().st_size:,} bytes"
        except (OSError, RuntimeError):
            return ""


def numbered(lines: list[str], *, start: int, max_characters: int) -> list[str]:
    """Return lines with their numbers before them, as many as fit; at least one."""
    shown: list[str] = []
    used = 0
    for number, line in enumerate(lines, start=start):
        text = line.rstrip("\r")
        if len(text) > MAX_LINE_CHARACTERS:
            text = f"{text[:MAX_LINE_CHARACTERS]} … {len(text) - MAX_LINE_CHARACTERS} more"
        text = f"{number:>6}  {text}"
        used += len(text) + 1
        if shown and used > max_characters:
            break
        shown.append(text)
    return shown


def _text_bytes(path: Path, *, max_bytes: int) -> bytes | None:
    """Return a source file's bytes; None for links, devices, binaries, and what is too large."""
    if path.suffix not in SUFFIXES:
        return None
    try:
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > max_bytes:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    return None if b"\0" in data else data
