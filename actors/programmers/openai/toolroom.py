"""Finds what a model may call while it writes: profiling tools, and CUTLASS's source."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from kopt.actors.cutlass.checkout import Refused
from kopt.actors.cutlass.find import PACKAGE, checkout_at, packaged_checkout
from kopt.actors.cutlass.library import Library
from kopt.actors.cutlass.mined import mined_tree
from kopt.actors.programmers.openai.tool_desk import ToolRules, ToolTable
from kopt.actors.programmers.tools_config import AUTO, OFF, ToolsConfig
from kopt.cutlass.constraint import MinedTree
from kopt.cutlass.constraint_text import constraint_lines
from kopt.ports import Target, WriteRequest
from kopt.prompts.tool_offers import offers_of

_LANGUAGES = frozenset(("cuda", "cute"))


class Toolroom:
    """Finds what can be offered, once, and counts what was called."""

    def __init__(
        self,
        config: ToolsConfig,
        *,
        max_profile_calls: int,
        device: str,
        cache_dir: Path,
        warn: Callable[[str], None],
    ) -> None:
        """Look for CUTLASS; nothing of it is read yet.

        Args:
            config: the section `programmer.tools`.
            max_profile_calls: of profiling tools, by one completion.
            device: of candidates; for `cpu` there is no CUTLASS.
            cache_dir: for what is mined.
            warn: shows one line to the user.

        Raises:
            ConfigError: the configured checkout is none.
        """
        self._rules = ToolRules(config=config, max_profile_calls=max_profile_calls)
        self._cache_dir = cache_dir
        self._mining = asyncio.Lock()
        self._tree: MinedTree | None = None
        self._is_unreadable = False
        self._library = self._find(device=device, warn=warn)

    def _find(self, *, device: str, warn: Callable[[str], None]) -> Library | None:
        stated = self._rules.config.cutlass
        if stated not in (AUTO, OFF):
            checkout = checkout_at(stated)
            return Library(checkout) if device != "cpu" else None
        if stated == OFF or device == "cpu":
            return None
        found = packaged_checkout()
        if found is None:
            warn(
                "no CUTLASS here: its source is not offered to the model; install the package "
                f"{PACKAGE}, or name a checkout by programmer.tools.cutlass (off: not wanted)"
            )
            return None
        return Library(found)

    def table(self, request: WriteRequest) -> ToolTable | None:
        """Return what an expansion's completions may call; None for nothing."""
        profile = offers_of(request)
        library = self._library if _is_for(request.target) else None
        if profile is None and library is None:
            return None
        return ToolTable(self._rules, profile=profile, library=library, request=request)

    async def manual(self, target: Target) -> tuple[str, ...]:
        """Return what CUTLASS demands on a target, for the prompt; nothing where there is none.

        The first call mines the tree, unless that was done before; others wait for it.
        """
        library = self._library
        if library is None or not _is_for(target) or self._is_unreadable:
            return ()
        async with self._mining:
            if self._tree is None:
                self._tree = await asyncio.to_thread(self._mine, library)
        if self._tree is None:
            self._is_unreadable = True
            return ()
        return constraint_lines(self._tree, arch=target.arch, has_tools=True)

    def _mine(self, library: Library) -> MinedTree | None:
        try:
            texts = library.texts()
        except Refused:
            return None
        return mined_tree(library.checkout, texts, cache_dir=self._cache_dir)

    def summary(self) -> str:
        """Return one line on the calls; empty where all went well, or none was made."""
        refused, made = self._rules.refused, self._rules.counts.total()
        if not refused:
            return ""
        kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(refused.items()))
        return f"{refused.total()} of {made} tool calls were not carried out ({kinds})"


def _is_for(target: Target) -> bool:
    return target.device != "cpu" and not _LANGUAGES.isdisjoint(target.languages)
