"""A request until it is answered: turns, retries with full jitter, and one deadline.

Invariant: a request ends in exactly one of a Reply, a Trouble that asking again would not mend,
or Unanswered; how often each kind of retry was needed is counted.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from kopt.actors.programmers.openai.deadline import Deadline
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.actors.programmers.openai.turns import Turns

MAX_BACKOFF_S = 60.0
"""Upper bound of any pause that the server does not ask for."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A request that was given up."""

    reason: str
    """One line: the last trouble, and how often it was tried."""


class Asker:
    """Sends requests; many at once."""

    def __init__(
        self, turns: Turns, *, max_retries: int, backoff_s: float, rng: random.Random
    ) -> None:
        """Take the bounds.

        Args:
            turns: that each try waits for.
            max_retries: of one request, >= 0.
            backoff_s: upper bound of the first pause; it doubles with each.
            rng: for the jitter, and for nothing that a result depends on.
        """
        self._turns = turns
        self._max_retries = max_retries
        self._backoff_s = backoff_s
        self._rng = rng
        self.num_requests = 0
        """Requests begun, retries not counted."""
        self.retries: Counter[str] = Counter()
        """Retries by what made them needed: a status, or `connection`."""

    async def ask(
        self, send: Callable[[], Awaitable[T | Trouble]], *, deadline: Deadline
    ) -> T | Trouble | Unanswered:
        """Send until it is answered, will not be, or the deadline is over.

        Args:
            send: one try; called again for each retry.
            deadline: of the whole; waiting for turns is not counted.
        """
        self.num_requests += 1
        tries, last = 0, ""
        try:
            async with deadline.running():
                while True:
                    async with deadline.paused_until(self._turns.take()):
                        tries += 1
                        outcome = await send()
                    if not isinstance(outcome, Trouble) or outcome.kind != "retry":
                        return outcome
                    last = outcome.reason
                    if tries > self._max_retries:
                        return Unanswered(reason=f"{last} ({_times(tries)})")
                    pause_s = self._pause_s(tries, outcome.after_s)
                    if pause_s >= deadline.left_s():
                        wait = f"{_times(tries)}, the next in {pause_s:.0f} s"
                        return Unanswered(reason=f"{last} ({wait}: past the deadline)")
                    self.retries[outcome.label] += 1
                    await asyncio.sleep(pause_s)
        except TimeoutError:
            before = f"; before: {last}" if last else ""
            return Unanswered(
                reason=f"no answer within {deadline.limit_s:g} s ({_times(tries)}{before})"
            )

    def _pause_s(self, tries: int, after_s: float | None) -> float:
        """Full jitter, so that those who failed together do not come back together."""
        bound_s = min(self._backoff_s * 2.0 ** (tries - 1), MAX_BACKOFF_S)
        return (after_s or 0.0) + self._rng.uniform(0.0, bound_s)


def _times(tries: int) -> str:
    return "tried once" if tries == 1 else f"tried {tries} times"
