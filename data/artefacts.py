"""Artefacts: long texts kept once each, named by the sha256 of their bytes.

`artefacts/<aa>/<sha256>`, where `aa` are the first two digits. Plain UTF-8 and no suffix, so that
a person can read them with any tool.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from kopt.data.atomic import make_folder, write_bytes
from kopt.errors import StoreError

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Artefacts:
    """The texts of one run folder. Many processes may read; putting is safe from several too."""

    def __init__(self, folder: Path | str) -> None:
        """Take the `artefacts` folder; it is made when the first text is put."""
        self.folder = Path(folder)

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
        path = self.path(sha256)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise StoreError(str(path), f"no such artefact ({error.strerror})") from error
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            raise StoreError(str(path), f"damaged: its bytes have the sha256 {found}")
        return content.decode("utf-8")

    def path(self, sha256: str) -> Path:
        """Return where the text of that name lies, whether it is there or not.

        Raises:
            StoreError: the name is not a sha256.
        """
        if not _SHA256.fullmatch(sha256):
            raise StoreError(
                str(self.folder), f"expected the name of an artefact (64 hex), found {sha256!r}"
            )
        return self.folder / sha256[:2] / sha256
