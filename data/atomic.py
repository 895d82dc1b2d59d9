"""Files that are there whole or not at all: a temporary name, fsync, rename."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kopt.errors import StoreError

TEMPORARY_SUFFIX = ".tmp"
"""Files of this suffix are leftovers of a process that died; every reader ignores them."""


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Give a temporary path; what was written there takes the place of `path` at the end.

    Args:
        path: the file to make or replace; its folder exists.
        durable: whether it is forced to disk first, so that it also outlives a power failure.

    Raises:
        StoreError: it cannot be written; `path` is as it was and the temporary file is gone.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        yield temporary
        if durable:
            _sync(temporary)
        os.replace(temporary, path)
        if durable:
            _sync(path.parent)
    except OSError as error:
        raise store_error(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file whole.

    Raises:
        StoreError: it cannot be written; nothing half-written is left.
    """
    with replacing(path, durable=durable) as temporary:
        temporary.write_bytes(content)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, if they are not there.

    Raises:
        StoreError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store_error(path, error) from error


def store_error(path: Path | str, error: OSError) -> StoreError:
    """Return the operating system's words as a StoreError that says what to do, where known."""
    why = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        why = f"{why}; free some space, then go on with `kopt resume`"
    return StoreError(str(path), why)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
