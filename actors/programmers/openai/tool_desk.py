"""What the completions of an expansion may call, and what is left of each one's budgets.

A call that cannot be carried out is one line to the model, and is counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kopt.actors.cutlass.checkout import Refused
from kopt.actors.cutlass.library import Library
from kopt.actors.programmers.openai.tool_calls import ToolCall
from kopt.actors.programmers.tools_config import ToolsConfig
from kopt.cutlass.calls import KINDS, SEARCH, BadArguments, CheckLayout, functions, read_call
from kopt.ports import WriteRequest
from kopt.prompts.tool_offers import MAX_NAME, ToolOffers

PROBES_AT_ONCE = 2
"""Compilers that run beside each other for models' questions."""
SPENT = "No call is left. Write the answer now, from what you know."


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a model hears of one call."""

    text: str
    is_made: bool
    """Whether it counts as a call: not so once all is spent."""


@dataclass(slots=True, kw_only=True)
class ToolRules:
    """What all expansions of a programmer share: bounds, and what was called so far."""

    config: ToolsConfig
    max_profile_calls: int
    """Of profiling tools, by one completion."""
    probes: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PROBES_AT_ONCE))
    """Held by whoever runs a compiler."""
    counts: Counter[str] = field(default_factory=Counter)
    """Calls by function, as they were made; `?` for those that there are not."""
    refused: Counter[str] = field(default_factory=Counter)
    """Calls that were not carried out, by why."""


class ToolTable:
    """The offers of one expansion; its searches are dealt out to its completions."""

    def __init__(
        self,
        rules: ToolRules,
        *,
        profile: ToolOffers | None,
        library: Library | None,
        request: WriteRequest,
    ) -> None:
        """Lay out what there is; at least one of `profile` and `library`."""
        self.rules = rules
        self.profile = profile
        self.library = library
        self._num_completions = request.expansion.num_candidates
        self._desks = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Of the functions, in the order of the offers."""
        profiling = tuple(self.profile.tools) if self.profile is not None else ()
        return (*profiling, *(KINDS if self.library is not None else ()))

    def functions(self) -> list[dict[str, Any]]:
        """Return the offers in the form of a chat completion's `tools`."""
        offered = self.profile.functions() if self.profile is not None else []
        return [*offered, *(functions() if self.library is not None else [])]

    @property
    def limits(self) -> dict[str, int]:
        """The budgets of one completion, for the journal."""
        limits: dict[str, int] = {}
        if self.profile is not None:
            limits["max_tool_calls"] = self.rules.max_profile_calls
        if self.library is not None:
            limits |= {"searches": self.rules.config.searches, "turns": self.rules.config.turns}
        return limits

    def desk(self) -> ToolDesk:
        """Return the desk of the next completion.

        Each of the first N has an even share of the searches, the earlier ones what is over;
        whoever comes later, to mend an answer, has none.
        """
        share, over = divmod(self.rules.config.searches, self._num_completions)
        number, self._desks = self._desks, self._desks + 1
        searches = share + (number < over) if number < self._num_completions else 0
        return ToolDesk(self, searches=searches)


class ToolDesk:
    """One completion's calls."""

    def __init__(self, table: ToolTable, *, searches: int) -> None:
        """Open it.

        Args:
            table: the offers.
            searches: that may be made.
        """
        self._table = table
        self._rules = table.rules
        self._searches = searches
        self._profile_calls = table.rules.max_profile_calls if table.profile is not None else 0
        self._characters = table.rules.config.characters if table.library is not None else 0

    @property
    def max_turns(self) -> int:
        """Turns in which anything may be called."""
        if self._table.library is None:
            return self._rules.max_profile_calls
        return self._rules.config.turns

    @property
    def is_open(self) -> bool:
        """Whether any call is left."""
        return self._profile_calls > 0 or self._characters > 0

    def functions(self) -> list[dict[str, Any]]:
        """Return the offers."""
        return self._table.functions()

    async def call(self, call: ToolCall) -> Heard:
        """Carry a call out, or say why not; it raises nothing that a model can cause."""
        if not self.is_open:
            self._rules.refused["budget spent"] += 1
            self._rules.counts[_known(call.name, self._table.names)] += 1
            return Heard(text=SPENT, is_made=False)
        self._rules.counts[_known(call.name, self._table.names)] += 1
        try:
            text = await self._carried_out(call)
        except (Refused, BadArguments) as refusal:
            kind = refusal.kind if isinstance(refusal, Refused) else "arguments"
            self._rules.refused[kind] += 1
            text = str(refusal)
        self._characters = max(0, self._characters - len(text))
        return Heard(text=text, is_made=True)

    async def _carried_out(self, call: ToolCall) -> str:
        """Raises Refused or BadArguments where it is not."""
        profile, library = self._table.profile, self._table.library
        if profile is not None and call.name in profile.tools:
            if self._profile_calls < 1:
                raise Refused("budget spent", "No call of a profiling tool is left.")
            self._profile_calls -= 1
            return profile.call(call.name)
        if library is None or call.name not in KINDS:
            if profile is not None:
                # Or a model that knows no name could go on for ever.
                self._profile_calls = max(0, self._profile_calls - 1)
            raise Refused(
                "unknown tool",
                f"There is no tool {call.name[:MAX_NAME]!r}; there are: "
                f"{', '.join(self._table.names)}.",
            )
        asked = read_call(call.name, call.arguments)
        if call.name != SEARCH:
            if isinstance(asked, CheckLayout):
                async with self._rules.probes:
                    return await asyncio.to_thread(library.answer, asked)
            return await asyncio.to_thread(library.answer, asked)
        if self._searches < 1:
            raise Refused(
                "budget spent",
                "No search is left in this iteration: read and list files, or write the answer.",
            )
        self._searches -= 1
        text = await asyncio.to_thread(library.answer, asked)
        left = "1 search is" if self._searches == 1 else f"{self._searches or 'no'} searches are"
        return f"{text}\n\n({left} left.)"


def _known(name: str, names: tuple[str, ...]) -> str:
    return name if name in names else "?"
