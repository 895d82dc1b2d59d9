"""How far the host goes ahead of a GPU before each timed call: as far as launching the call takes.

Pure: numbers in, numbers out. A pause before a timed call hides what launching it takes. Where the
host is busy, or a call launches many kernels, the device gets to a call before all of it is
launched: the call is starved, and the host shows in its time, where the same code may then be 10 %
apart in two processes. Children say how many calls of a block were; the supervisor sets the pause.

Invariants: both sides of a race have the same pause, and a race that found its pause too short
begins again with a longer one: leaving out the pairs that were starved would favour whoever is
quick by chance.

What a pause hides, a candidate that replaces the loop can hide work in (kopt.hidden_time). So the
word of a candidate raises it a little, that of a baseline, trusted code, by more; a candidate whose
launches need more is timed with them in it, which makes it no faster. One that lies may have its
race begin again twice, without knowing how the pairs stand. A call that waits for the device itself
is starved behind any pause: where the longest does not help, the first does as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kopt.overhead import Block

FIRST_US = 250.0
"""More than launching fresh content and a call of one kernel takes a calm host."""
MOST_US = 4_000.0
"""Launching takes some 5 us a kernel: several hundred, or fewer on a host that is busy."""
UNTRUSTED_MOST_US = 1_000.0
STARVED_SHARE = 0.25
"""Of the calls of a block. Its time is their median: fewer that are too long hardly move it."""
BLOCKS_SHARE = 0.1
"""Of the blocks of one side of a race."""
FEWEST_BLOCKS = 2
"""One block that was starved is a hiccup of the host's."""


@dataclass(slots=True, kw_only=True)
class HeadStart:
    """Of the timed calls of one child."""

    most_us: float = MOST_US
    """Whose need is not met by so much has none that a pause could meet."""
    needed_us: float = FIRST_US
    """As far as it was found yet."""
    pause_us: float = FIRST_US
    """What is commanded: what is needed, or more where the other side of a race needs more."""
    is_vain: bool = False
    """Whether calls are starved behind the longest pause too."""

    def begin(self) -> None:
        """Forget what was found: the host may be calmer, or busier, by now."""
        self.needed_us = self.pause_us = FIRST_US
        self.is_vain = False

    def learn(self, blocks: Sequence[Block]) -> bool:
        """Return whether blocks made with the present pause ask for a longer one, and remember it.

        Args:
            blocks: made for this, or those of one side of a race so far. One alone is enough where
                no other was made.
        """
        starved = sum(is_starved(block) for block in blocks)
        fewest = max(min(FEWEST_BLOCKS, len(blocks)), BLOCKS_SHARE * len(blocks))
        if self.is_vain or starved < fewest:
            return False
        if 2.0 * self.pause_us > self.most_us:
            self.is_vain = True
            self.needed_us = FIRST_US
            return False
        self.needed_us = 2.0 * self.pause_us
        return True


def is_starved(block: Block) -> bool:
    """Return whether so many calls of a block were starved that its time shows it."""
    return block.starved > STARVED_SHARE * block.calls


def make_alike(one: HeadStart, other: HeadStart) -> None:
    """Have both sides of a race pause for as long as the one that needs more."""
    one.pause_us = other.pause_us = max(one.needed_us, other.needed_us)
