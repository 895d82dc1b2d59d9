"""The order of a recorded search: what its tree heard when, to be heard in the same order again.

A tree that had several expansions in flight decided by what it had heard so far. To grow the same
tree, a replay asks when the recording asked, and holds back what comes too early. Where the replay
cannot go on as the recording did, the order is given up and the search goes on as any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, assert_never

from kopt.data.fold import Operation
from kopt.driver.limits import FAILED_PREFIX, LIMIT_PREFIX
from kopt.events import ExpansionAsked, ExpansionCancelled, SearchEnded, SearchExtended, Told
from kopt.expansion import Expansion

FORCED_ENDS = (LIMIT_PREFIX, FAILED_PREFIX)
"""What the reasons begin with for which a driver ends a search that has more to ask."""


class Step(NamedTuple):
    """Something that a tree went through."""

    kind: str
    """Of the event."""
    expansion: int
    slot: int = 0
    """Which was told; 0 for the others."""


class RecordedOrder:
    """The steps of one search, and which is next. One event loop; owned by the search's task."""

    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        ended: SearchEnded | None,
        taken: Sequence[Operation] = (),
    ) -> None:
        """Take the order.

        Args:
            operations: of the recorded search.
            ended: how it ended; None where it was interrupted.
            taken: what an earlier part of this run went through; if that is another way, there is
                no order to follow.
        """
        self._steps = _steps(operations)
        before = _steps(taken)
        self._next = len(before)
        self._place = {step: number for number, step in enumerate(self._steps)}
        self._follows = before == self._steps[: self._next]
        self._changed = asyncio.Event()
        is_forced = ended is not None and ended.reason.startswith(FORCED_ENDS)
        self._end = ended if is_forced else None

    @property
    def holds_asks(self) -> bool:
        """Whether something must be heard before the tree may ask."""
        return self._awaits() not in (None, ExpansionAsked.kind)

    @property
    def is_due(self) -> bool:
        """Whether the tree must ask before anything else is heard."""
        return self._awaits() == ExpansionAsked.kind

    @property
    def is_followed(self) -> bool:
        """Whether everything has gone as recorded so far."""
        return self._follows

    @property
    def end(self) -> SearchEnded | None:
        """How the recording was ended from outside its tree, once all else has happened."""
        return self._end if self._follows and self._next == len(self._steps) else None

    def sort(self, expansion: Expansion, slots: Sequence[int]) -> list[int]:
        """Return slots of an expansion in the order in which the recording heard of them."""
        place = self._place
        steps = [Step(Told.kind, expansion.ordinal, slot) for slot in slots]
        return [step.slot for step in sorted(steps, key=lambda s: place.get(s, len(place)))]

    async def turn(self, step: Step) -> None:
        """Wait until a step is next, or the order is given up; one it does not have ends it."""
        while self._awaits() is not None and self._steps[self._next] != step:
            if self._place.get(step, -1) < self._next:
                self.give_up()
                return
            await self._changed.wait()

    def took(self, step: Step) -> None:
        """Go on: the step was taken."""
        if self._awaits() is None:
            return
        if self._steps[self._next] != step:
            self.give_up()
            return
        self._next += 1
        self._wake()

    def give_up(self) -> None:
        """Hold nothing back any more; more than once is harmless."""
        self._follows = False
        self._wake()

    def _awaits(self) -> str | None:
        """Return the kind of the next step; None where there is nothing to follow."""
        if not self._follows or self._next >= len(self._steps):
            return None
        return self._steps[self._next].kind

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _steps(operations: Sequence[Operation]) -> list[Step]:
    steps = []
    for operation in operations:
        match operation:
            case SearchExtended():
                continue  # a larger budget changes nothing that came before
            case Told():
                steps.append(Step(operation.kind, operation.expansion, operation.index))
            case ExpansionAsked() | ExpansionCancelled():
                steps.append(Step(operation.kind, operation.expansion))
            case _:
                assert_never(operation)
    return steps
