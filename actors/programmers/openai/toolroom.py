"""Finds what a model may call while it writes: profiling tools, and CUTLASS's source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kopt.actors.cutlass.find import PACKAGE
from kopt.actors.programmers.cutlass_manual import Manual, find_library, is_for
from kopt.actors.programmers.openai.tool_desk import ToolRules, ToolTable
from kopt.actors.programmers.tools_config import AUTO, ToolsConfig
from kopt.ports import Target, WriteRequest
from kopt.prompts.tool_offers import offers_of


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
        self._library = find_library(config.cutlass, key="programmer.tools.cutlass", device=device)
        self._manual = Manual(self._library, cache_dir=cache_dir, has_tools=True)
        if self._library is None and config.cutlass == AUTO and device != "cpu":
            warn(
                "no CUTLASS here: its source is not offered to the model; install the package "
                f"{PACKAGE}, or name a checkout by programmer.tools.cutlass (off: not wanted)"
            )

    def table(self, request: WriteRequest) -> ToolTable | None:
        """Return what an expansion's completions may call; None for nothing."""
        profile = offers_of(request)
        library = self._library if is_for(request.target) else None
        if profile is None and library is None:
            return None
        return ToolTable(self._rules, profile=profile, library=library, request=request)

    async def manual(self, target: Target) -> tuple[str, ...]:
        """Return what CUTLASS demands on a target, for the prompt; nothing where there is none.

        The first call mines the tree, unless that was done before; others wait for it.
        """
        return await self._manual.lines(target)

    def summary(self) -> str:
        """Return one line on the calls; empty where all went well, or none was made."""
        refused, made = self._rules.refused, self._rules.counts.total()
        if not refused:
            return ""
        kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(refused.items()))
        return f"{refused.total()} of {made} tool calls were not carried out ({kinds})"
