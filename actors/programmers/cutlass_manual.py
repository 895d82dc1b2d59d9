"""The manual: what CUTLASS's source demands on a target, as lines for a prompt."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kopt.actors.cutlass.checkout import Refused
from kopt.actors.cutlass.find import checkout_at, packaged_checkout
from kopt.actors.cutlass.library import Library
from kopt.actors.cutlass.mined import mined_tree
from kopt.actors.programmers.tools_config import AUTO, OFF
from kopt.cutlass.constraint import MinedTree
from kopt.cutlass.constraint_text import constraint_lines
from kopt.ports import Target

_LANGUAGES = frozenset(("cuda", "cute"))


def find_library(stated: str, *, key: str, device: str) -> Library | None:
    """Return what a setting `cutlass` stands for; None where there is none, or no use for it.

    Args:
        stated: `auto`, `off`, or the path of a checkout.
        key: of the setting.
        device: of candidates; for `cpu` there is no CUTLASS.

    Raises:
        ConfigError: the path is no checkout.
    """
    if stated == OFF:
        return None
    found = packaged_checkout() if stated == AUTO else checkout_at(stated, key=key)
    return Library(found) if found is not None and device != "cpu" else None


def is_for(target: Target) -> bool:
    """Return whether candidates for a target may use CUTLASS."""
    return target.device != "cpu" and not _LANGUAGES.isdisjoint(target.languages)


class Manual:
    """Mines a tree once, for all prompts of a programmer."""

    def __init__(self, library: Library | None, *, cache_dir: Path, has_tools: bool) -> None:
        """Take a tree; nothing of it is read yet.

        Args:
            library: the tree; None gives no lines.
            cache_dir: for what is mined.
            has_tools: whether those who read the lines may search the tree.
        """
        self._library = library
        self._cache_dir = cache_dir
        self._has_tools = has_tools
        self._mining = asyncio.Lock()
        self._tree: MinedTree | None = None
        self._is_unreadable = False

    async def lines(self, target: Target) -> tuple[str, ...]:
        """Return what CUTLASS demands on a target; nothing where there is none.

        The first call mines the tree, unless that was done before; others wait for it.
        """
        library = self._library
        if library is None or not is_for(target) or self._is_unreadable:
            return ()
        async with self._mining:
            if self._tree is None:
                self._tree = await asyncio.to_thread(self._mine, library)
        if self._tree is None:
            self._is_unreadable = True
            return ()
        return constraint_lines(self._tree, arch=target.arch, has_tools=self._has_tools)

    def _mine(self, library: Library) -> MinedTree | None:
        try:
            texts = library.texts()
        except Refused:
            return None
        return mined_tree(library.checkout, texts, cache_dir=self._cache_dir)
