"""How many calls of a GPU are queued before the first begins: as many as the queue takes whole.

Pure: numbers in, numbers out. A block of calls is released once all of it is queued, so that what
launching it takes does not show in its time. A queue holds about a thousand launches: a block of
calls that launch many kernels each is released before all of it is there, and the host shows in its
time, where the same code may then be 10 % apart in two processes. Then a block has half as many
calls, down to one.

Invariants: both sides of a race have blocks of the same depth at most, and a race that found its
depth too great begins again with a smaller one: leaving out the pairs that were late would favour
whoever is quick by chance. A candidate's word can make blocks smaller and a race begin again, a few
times, and cannot make anything faster. A call that waits for the device itself is never queued
whole: where one alone is not, the depth is what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kopt.overhead import Block

MOST_CALLS = 40
"""Of one block."""
LATE_SHARE = 0.1
"""Of the blocks of one side of a race, how many may be released before they are queued."""
FEWEST_BLOCKS = 2
"""One block that was late is a hiccup of the host's."""


@dataclass(slots=True)
class QueueDepth:
    """Of the timed calls of one child."""

    found: int = MOST_CALLS
    """Calls that are queued whole, as far as it was found yet."""
    calls: int = MOST_CALLS
    """Calls of a block at most: what is found, or less where the other side of a race needs it."""
    is_vain: bool = False
    """Whether not even one call is queued whole."""

    def begin(self) -> None:
        """Forget what was found: the host may be calmer, or busier, by now."""
        self.found = self.calls = MOST_CALLS
        self.is_vain = False

    def learn(self, blocks: Sequence[Block]) -> bool:
        """Return whether blocks made at the present depth ask for a smaller one, and remember it.

        Args:
            blocks: made for this, or those of one side of a race so far. One alone is enough where
                no other was made.
        """
        late = [block for block in blocks if not block.was_queued]
        fewest = max(min(FEWEST_BLOCKS, len(blocks)), LATE_SHARE * len(blocks))
        if self.is_vain or len(late) < fewest:
            return False
        calls = min(self.calls, max(block.calls for block in late))
        if calls == 1:
            self.is_vain = True
            self.found = MOST_CALLS
            return False
        self.found = calls // 2
        return True


def make_alike(one: QueueDepth, other: QueueDepth) -> None:
    """Let the blocks of both sides of a race be no deeper than the one that takes fewer."""
    one.calls = other.calls = min(one.found, other.found)
