"""The cache of builds: a store of folders (kopt.actors.cache), each made where it stays."""

from __future__ import annotations

from pathlib import Path

from kopt.actors.cache.kinds import KINDS, open_store
from kopt.actors.cache.store import Entry, Store

__all__ = ["IN_USE_S", "LEAST_FREE_BYTES", "BuildCache", "Entry"]

IN_USE_S = KINDS["build"].in_use_s
LEAST_FREE_BYTES = KINDS["build"].least_free_bytes
"""With less than this free, a build is not begun here."""


class BuildCache(Store):
    """Builds of one node; any number of processes may share it."""

    def __init__(self, root: Path, *, max_bytes: int | None = None) -> None:
        """Use a folder.

        Args:
            root: `build` in kopt's cache; need not exist.
            max_bytes: kept of builds; None for the bound of the cache.
        """
        bound = open_store(root.parent, "build").max_bytes
        super().__init__(
            root=root,
            kind="build",
            max_bytes=bound if max_bytes is None else max_bytes,
            least_free_bytes=LEAST_FREE_BYTES,
            in_use_s=IN_USE_S,
        )
