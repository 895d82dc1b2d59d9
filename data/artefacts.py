"""Artefacts: long texts kept once each, named by the sha256 of their bytes.

`artefacts/<aa>/<sha256>`, where `aa` are the first two digits. Plain UTF-8 and no suffix, so that
a person can read them with any tool.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from kopt.data.atomic import make_folder, write_bytes
from kopt.errors import StoreError

READ_BYTES = 1 << 16
"""Read at once: nearly every text."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Artefacts:
    """The texts of one run folder. Many processes may read; putting is safe from several too."""

    def __init__(self, folder: Path | str) -> None:
        """Take the `artefacts` folder; it is made when the first text is put."""
        self.folder = Path(folder)
        self._folder = str(self.folder)

    def put(self, text: str) -> str:
        """Keep a text and return its sha256; a text that is there already is left alone.

        What UTF-8 has no form for (a lone surrogate) is kept as `?`.

        Raises:
            StoreError: it cannot be written; nothing half-written is left.
        """
        content = text.encode("utf-8", errors="replace")
        sha256 = hashlib.sha256(content).hexdigest()
        path = self.path(sha256)
        if not path.exists():
            make_folder(path.parent)
            # Written before the event that names it, and needed only by this run: as durable as
            # a journal line, so no fsync.
            write_bytes(path, content, durable=False)
        return sha256

    def get(self, sha256: str) -> str:
        """Return a text.

        Raises:
            StoreError: there is none of that name, or its bytes are not those that were put.
        """
        path = self._place(sha256)
        try:
            content = _content(path)
        except OSError as error:
            raise StoreError(path, f"no such artefact ({error.strerror})") from error
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            raise StoreError(path, f"damaged: its bytes have the sha256 {found}")
        return content.decode("utf-8")

    def path(self, sha256: str) -> Path:
        """Return where the text of that name lies, whether it is there or not.

        Raises:
            StoreError: the name is not a sha256.
        """
        return Path(self._place(sha256))

    def _place(self, sha256: str) -> str:
        if not _SHA256.fullmatch(sha256):
            raise StoreError(
                str(self.folder), f"expected the name of an artefact (64 hex), found {sha256!r}"
            )
        return f"{self._folder}/{sha256[:2]}/{sha256}"


def _content(path: str) -> bytes:
    """Return a file's bytes; a third less than `open` takes: a corpus reads 100,000s of them.

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = os.read(descriptor, READ_BYTES)
        while chunk := os.read(descriptor, READ_BYTES):
            content += chunk
        return content
    finally:
        os.close(descriptor)
