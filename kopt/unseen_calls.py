"""Whether timed calls take longer on inputs never seen: what pairs of blocks say, and how surely.

Pure: numbers in, numbers out. A pair is one block on known inputs and one on inputs that the module
was never given, side by side, in an order that a coin decides; its value is the logarithm of their
ratio. Where a module does not care, a coin decides the sign of what the host adds, and nothing else
does: the signed-rank limits of the middle hold however busy the host is (kopt.coin_interval). A
busy host makes them wide, and more pairs are needed; it does not move them.

What an honest module may take longer, since caches are cold, is measured at the reference by the
same pairs: by their middle, as one disturbed block would excuse anything. Source: exploits 18, 19.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from kopt.coin_interval import center_of, outer_rank, walsh_means
from kopt.timing import Timing

Finding = Literal["fine", "too_long", "open"]

FACTOR = 1.5
SHARE = 0.1
"""A call on an input never seen may take longer by what the reference's does, times a factor, by a
tenth of itself, with what a command takes by our clock, and by what is allowed besides."""
REFUSED, PASSED = 1 / 4_000, 1 / 500
"""Chance of a limit to be on the wrong side of the middle, at one look by one clock: of the one by
which a candidate is refused, and of the one by which it passes."""
DOUBTFUL = 1 / 10
"""Chance that the reference takes longer by less than what a candidate may pass with."""
FEWEST = 3
STEADY = 0.1
"""So few pairs are enough, where all are within what is allowed and lie no farther apart than so
much (a logarithm): the host is calm."""
WHOSE = ("our", "its own")


class Pair(NamedTuple):
    """Microseconds of one call in two blocks, by our clock and by the child's."""

    seen_us: tuple[float, float]
    """On inputs that are known."""
    unseen_us: tuple[float, float]
    """On inputs never given to the module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What a call may take longer in any case, in microseconds."""

    call_us: float
    """One timed call, as the candidate says; for its author to read."""
    floor_us: float
    """Whatever a call takes."""
    cold_us: float = 0.0
    """For reading the inputs from memory, where known ones lie in a cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """What the pairs say."""

    finding: Finding
    """`open` where so many pairs cannot tell."""
    why: str = ""
    """Of `too_long`, for the candidate's author."""
    longer: float = 1.0
    """Middle of the ratio of a call's time on unseen inputs to that on known ones, at least 1, by
    whichever clock says more."""
    most: float = 1.0
    """Its upper limit, likewise; inf where there is none."""


def look_at(mine: Sequence[Pair], *, theirs: Sequence[Pair], allowed: Allowed) -> Unseen:
    """Return what the pairs so far say of a candidate.

    Args:
        mine: the candidate's, at least one.
        theirs: the reference's, made between them, at least one.
        allowed: beyond what the reference takes longer.
    """
    by_clock = [_by_clock(mine, theirs, clock=clock, allowed=allowed) for clock in (0, 1)]
    longer = max(each.longer for each in by_clock)
    most = max(each.most for each in by_clock)
    for each in by_clock:
        if each.finding == "too_long":
            return Unseen(finding="too_long", why=each.why, longer=longer, most=most)
    is_fine = all(each.finding == "fine" for each in by_clock)
    return Unseen(finding="fine" if is_fine else "open", longer=longer, most=most)


def as_it_holds(timing: Timing, found: Unseen) -> Timing:
    """Return a timing whose gain is no larger than it would be on unseen inputs.

    Args:
        timing: of a race.
        found: where pairs could not tell.
    """
    low, high = timing.speedup_ci
    return replace(
        timing, speedup=timing.speedup / found.longer, speedup_ci=(low / found.most, high)
    )


def _by_clock(
    mine: Sequence[Pair], theirs: Sequence[Pair], *, clock: int, allowed: Allowed
) -> Unseen:
    ratios = _ratios(mine, clock)
    means = walsh_means(ratios)
    middle = center_of(means)
    beyond = walsh_means(_ratios(theirs, clock))
    surely = beyond[outer_rank(len(theirs), level=DOUBTFUL) or 0]
    limit, strict_limit = (
        math.log1p(_allowed_us(each, mine, theirs, clock, allowed) / _calm_us(mine, clock))
        for each in (center_of(beyond), surely)
    )
    longer = math.exp(max(middle, 0.0))
    refusing, passing = (outer_rank(len(ratios), level=each) for each in (REFUSED, PASSED))
    most = math.inf if passing is None else math.exp(max(means[-1 - passing], 0.0))
    if refusing is not None and means[refusing] > limit:
        why = (
            f"by {WHOSE[clock]} clock a timed call takes {math.expm1(middle):.0%} longer on an "
            f"input never seen than on one that is known, surely "
            f"{math.expm1(means[refusing]):.0%}; {math.expm1(limit):.0%} is allowed; of its calls "
            f"the candidate says {allowed.call_us:.4g} us"
        )
        return Unseen(finding="too_long", why=why, longer=longer, most=most)
    is_calm = len(ratios) >= FEWEST and max(ratios) - min(ratios) <= STEADY
    if (is_calm and max(ratios) <= limit) or math.log(most) <= strict_limit:
        return Unseen(finding="fine", longer=longer, most=most)
    return Unseen(finding="open", longer=longer, most=most)


def _allowed_us(
    beyond: float, mine: Sequence[Pair], theirs: Sequence[Pair], clock: int, allowed: Allowed
) -> float:
    beyond_us = math.expm1(max(beyond, 0.0)) * _calm_us(theirs, clock)
    share_us = SHARE * _calm_us(mine, clock)
    return FACTOR * beyond_us + share_us + allowed.floor_us + allowed.cold_us


def _ratios(pairs: Sequence[Pair], clock: int) -> list[float]:
    return [math.log(each.unseen_us[clock] / each.seen_us[clock]) for each in pairs]


def _calm_us(pairs: Sequence[Pair], clock: int) -> float:
    """What is allowed is that of a calm host, and a busy one only adds."""
    return min(each.seen_us[clock] for each in pairs)
