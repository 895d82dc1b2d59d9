"""The blocks of a race: a candidate's and a baseline's in turn, in an order that a coin decides.

On a GPU both sides have blocks of no more calls than either has queued whole. Where blocks of
either show that these are too many, both have fewer and the race begins again, which it does at
most as often as a depth can be halved (kopt.queue_depth): no pair is left out for what it shows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.overhead import Block
from kopt.queue_depth import FEWEST_BLOCKS, make_alike
from kopt.racing import Race, pair_ratios
from kopt.timing import Baseline

ALIKE = 4.0
"""Where the blocks of both would have numbers of calls within this factor, they have the same: a
block of few calls is preempted less often than one of many, and differs from it otherwise too."""


@dataclass(slots=True)
class Raced:
    """Blocks of one race, or of one measurement of each."""

    baseline: Baseline
    """Which one it is."""
    mine: list[Block] = field(default_factory=list)
    """The candidate's."""
    theirs: list[Block] = field(default_factory=list)
    """The baseline's: between them in a race, otherwise before them."""
    ratios: tuple[float, ...] = ()
    """Of the pairs; none where each was measured by itself."""
    net_ratios: tuple[float, ...] = ()
    """The same of times without what was waited for a processor."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two that race."""

    watch: Stopwatch
    block: Callable[[int], Block]
    """Times a block of so many calls, with whatever belongs to it on this side."""


def run_race(
    baseline: Baseline,
    *,
    mine: Side,
    theirs: Side,
    new_race: Callable[[], Race],
    rng: random.Random,
) -> Raced:
    """Race until the outcome is clear.

    Args:
        baseline: what `theirs` is.
        mine: the candidate's side, warm.
        theirs: the baseline's.
        new_race: makes the rule that says when it is over.
        rng: secret; the coin.

    Raises:
        Whatever a block of either side raises.
    """
    while True:
        make_alike(mine.watch.depth, theirs.watch.depth)
        raced = _pairs(Raced(baseline), mine, theirs, race=new_race(), rng=rng)
        if raced is not None:
            return raced


def _pairs(
    raced: Raced, mine: Side, theirs: Side, *, race: Race, rng: random.Random
) -> Raced | None:
    """Fill in a race's pairs; None where its blocks turn out to be too many calls."""
    while race.state == "continue":
        mine_calls, their_calls = block_calls(mine.watch.full, theirs.watch.full)
        mine_calls = min(mine_calls, mine.watch.most_calls)
        their_calls = min(their_calls, theirs.watch.most_calls)
        # The coin is what the interval rests on (kopt.coin_interval).
        if rng.getrandbits(1):
            my_block = mine.block(mine_calls)
            their_block = theirs.block(their_calls)
        else:
            their_block = theirs.block(their_calls)
            my_block = mine.block(mine_calls)
        raced.mine.append(my_block)
        raced.theirs.append(their_block)
        if _is_too_deep(mine, raced.mine) or _is_too_deep(theirs, raced.theirs):
            return None
        race.observe(
            pair_ratios([their_block.call_us], candidate_us=[my_block.call_us]),
            net_ratios=pair_ratios([their_block.net_call_us], candidate_us=[my_block.net_call_us]),
        )
    raced.ratios, raced.net_ratios = race.ratios, race.net_ratios
    return raced


def _is_too_deep(side: Side, blocks: list[Block]) -> bool:
    return len(blocks) >= FEWEST_BLOCKS and side.watch.depth.learn(blocks)


def block_calls(mine: int, theirs: int) -> tuple[int, int]:
    """Return the calls of a block of each, whose full blocks have so many: the same, if alike."""
    if max(mine, theirs) > ALIKE * min(mine, theirs):
        return mine, theirs
    return (max(mine, theirs),) * 2
