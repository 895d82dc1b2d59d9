"""What surely passed in a candidate's calls and not in what it says of them, by our clock.

Pure: numbers in, numbers out. A candidate shares its process with the clock that times it. What
passes beside each of its calls, if what it says is true, is compared with what passes beside each
of the baseline's in the block next to it: a pair has one state of the host, so that its drift does
not show in the difference. An honest candidate's is a little off 0, since what its call leaves in
the caches, and how it lays out its output, is its own: of six pairs of honest candidates and their
references on an H200 the medians lay between -2.4 and 0.7 us, where 48 to 70 us pass beside a call
in any case, and blocks of one pair scattered by 1 to 3 us.

What is allowed is therefore a share of that: a larger one of the middle of the differences, and a
smaller one of what they surely are (their lower limit). On that GPU some 8 us a call stay hidden.

What our clock cannot see: a candidate that replaces the loop by a quicker one may hide as much as
it saves there. On a CPU that is some tens of microseconds a call; on a GPU, where little but the
sweep of a pool passes between calls (actors/devices/pool.py), the reading of an output that its own
kernel has digested already. Its calls have to be made all the same, each with its own input and
output, and its text is seen by gate 1. Source: DESIGN §5.4; exploits 20, 30, 31, 33.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kopt.coin_interval import center_of, outer_rank, walsh_means
from kopt.overhead import Block, beside_us, overhead

LEVEL = 0.05
"""Chance that the lower limit is above the middle of the differences: it only takes off time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """By how much more may pass beside an honest candidate's calls than beside the baseline's.

    Both are shares of what passes beside one of the baseline's calls.
    """

    middle: float
    """Of the middle of the differences."""
    surely: float
    """Of their lower limit; less than the other has an effect."""


def differences_us(mine: Sequence[Block], *, theirs: Sequence[Block]) -> list[float]:
    """Return by how much more passed beside a call of each of a candidate's blocks.

    Args:
        mine: the candidate's.
        theirs: the baseline's, each next to one of these; any other number of them, at least one,
            where nothing was paired.
    """
    if len(mine) != len(theirs):
        spent = overhead(theirs)
        return [beside_us(block) - spent.beside_us(block.calls) for block in mine]
    return [
        beside_us(block) - overhead([other]).beside_us(block.calls)
        for block, other in zip(mine, theirs, strict=True)
    ]


def hidden_us(mine: Sequence[Block], *, theirs: Sequence[Block], slack: Slack) -> float:
    """Return by how much longer a call surely took than the candidate says; 0 where it may be true.

    Args:
        mine: the candidate's blocks, at least one.
        theirs: as `differences_us`.
        slack: what is allowed.
    """
    means = walsh_means(differences_us(mine, theirs=theirs))
    calls = round(statistics.median(block.calls for block in mine))
    own_us = overhead(theirs).beside_us(calls)
    found_us = center_of(means) - slack.middle * own_us
    rank = outer_rank(len(mine), level=LEVEL)
    if rank is not None:
        found_us = max(found_us, means[rank] - slack.surely * own_us)
    return max(found_us, 0.0)
