"""CUTLASS as a model's reference: a tree and its index, behind four functions.

The index is built by the first search and serves all conversations. Calls may come from many
threads.
"""

from __future__ import annotations

import threading

from kopt.actors.cutlass.checkout import Checkout, Refused, numbered
from kopt.actors.cutlass.smem_probe import check_smem_layout
from kopt.cutlass.calls import (
    CheckLayout,
    CutlassCall,
    ListFolder,
    ReadFile,
    Search,
)
from kopt.cutlass.index import SourceIndex

CONTEXT_BEFORE, CONTEXT_AFTER = 2, 4
"""Lines shown round a hit: what follows a definition says more than what precedes it."""
MAX_RESULT = 7_000
"""Characters of one search's result."""


class Library:
    """What a model may ask of a tree."""

    def __init__(self, checkout: Checkout) -> None:
        """Take a tree; nothing is read yet."""
        self.checkout = checkout
        self._lock = threading.Lock()
        self._texts: dict[str, str] | None = None
        self._index: SourceIndex | None = None

    def texts(self) -> dict[str, str]:
        """Return the tree's texts; read once."""
        with self._lock:
            return self._read()

    def answer(self, call: CutlassCall) -> str:
        """Return what a call finds.

        Raises:
            Refused: it is not carried out.
        """
        match call:
            case Search():
                return self._search(call.query, scope=call.path)
            case ReadFile():
                return self.checkout.read(call.path, start=call.start, lines=call.lines)
            case ListFolder():
                return self.checkout.list_folder(call.path)
            case CheckLayout():
                return check_smem_layout(
                    self.checkout.include,
                    layout_atom=call.layout_atom,
                    shape=call.shape,
                    element=call.element or "half_t",
                )

    def _search(self, query: str, *, scope: str | None) -> str:
        index = self._indexed()
        hits = index.search(query, scope=scope)
        if not hits:
            where = f" in {scope[:80]}" if scope else ""
            return f"Nothing is found{where} ({index.num_files} files): try fewer or other words."
        texts = self.texts()
        parts: list[str] = []
        used = 0
        for hit in hits:
            lines = texts[hit.path].split("\n")
            first = max(1, hit.line - CONTEXT_BEFORE)
            shown = numbered(
                lines[first - 1 : hit.line + CONTEXT_AFTER],
                start=first,
                max_characters=MAX_RESULT // 4,
            )
            part = "\n".join([f"{hit.path}:{hit.line}", *shown])
            used += len(part) + 2
            if parts and used > MAX_RESULT:
                parts.append(f"… {len(hits) - len(parts)} more places")
                break
            parts.append(part)
        return "\n\n".join(parts)

    def _indexed(self) -> SourceIndex:
        with self._lock:
            if self._index is None:
                self._index = SourceIndex(self._read())
            return self._index

    def _read(self) -> dict[str, str]:
        if self._texts is None:
            self._texts = self.checkout.texts()
            if not self._texts:
                raise Refused("tree", "The tree cannot be read.")
        return self._texts
