"""Verdicts shared by the fleet: one candidate of one problem is judged once.

A duplicate that arrives while the first is still being judged waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kopt.evaluation import Evaluation

Key = tuple[str, str]
"""(problem id, candidate id)."""


class SharedVerdicts:
    """What is known, or being found out, of every (problem, candidate)."""

    def __init__(self, known: dict[Key, Evaluation] | None = None) -> None:
        """Start from verdicts of an earlier part of the run."""
        self._known: dict[Key, Evaluation] = dict(known or {})
        self._under_way: dict[Key, asyncio.Future[Evaluation]] = {}

    async def get(
        self, key: Key, judge: Callable[[], Awaitable[Evaluation]]
    ) -> tuple[Evaluation, bool]:
        """Return the evaluation, and whether it was there already (or on its way).

        Raises:
            Whatever `judge` raises; each waiter of the same key then judges for itself.
        """
        while True:
            if key in self._known:
                return self._known[key], True
            under_way = self._under_way.get(key)
            if under_way is None:
                return await self._judge(key, judge), False
            await asyncio.wait([under_way])

    async def _judge(self, key: Key, judge: Callable[[], Awaitable[Evaluation]]) -> Evaluation:
        under_way: asyncio.Future[Evaluation] = asyncio.get_running_loop().create_future()
        self._under_way[key] = under_way
        try:
            evaluation = await judge()
            self._known[key] = evaluation
            return evaluation
        finally:
            del self._under_way[key]
            under_way.cancel()
