"""The experience queue: the changes of a search that taught most, the oldest leave first.

Source: KernelOPT §4.5, Eq. 6: store(e) = [s(e) ≥ s₊] or [s(e)⁻¹ ≥ s₋]. A gain under 5 % teaches
less than a loss over 20 %. s(e) is what the change did: the candidate against what it was made from
(the baseline, where that was not right). Of one direction (App. A.3, step 5) the stronger item
stays; a gain and a loss are two manifestations, and both stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kopt.direction import direction_of
from kopt.memory.tried import Tried

CAPACITY = 8
"""Q."""
LEAST_GAIN = 1.05
"""s₊."""
LEAST_LOSS = 1.20
"""s₋."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperienceRule:
    """What is kept."""

    capacity: int = CAPACITY
    """Items, >= 1."""
    least_gain: float = LEAST_GAIN
    """A change is kept from this factor of speed on, > 1."""
    least_loss: float = LEAST_LOSS
    """And from this factor of slowness on, > 1."""


def is_kept(gain: float | None, *, rule: ExperienceRule) -> bool:
    """Return whether a change of that factor is stored; None (it is not right) never is."""
    if gain is None or gain <= 0:
        return False
    return gain >= rule.least_gain or 1.0 / gain >= rule.least_loss


def experience_of(tried: Iterable[Tried], *, rule: ExperienceRule) -> tuple[Tried, ...]:
    """Return the queue after all that was tried, the oldest item first."""
    queue: tuple[Tried, ...] = ()
    for item in tried:
        queue = queue_after(queue, item, rule=rule)
    return queue


def queue_after(
    queue: tuple[Tried, ...], item: Tried, *, rule: ExperienceRule
) -> tuple[Tried, ...]:
    """Return the queue after one more was tried: one step of `experience_of`."""
    if not is_kept(item.gain, rule=rule):
        return queue
    same = next((each for each in queue if _is_same(each, item)), None)
    if same is not None and _strength(same) >= _strength(item):
        return queue
    return (*(each for each in queue if each is not same), item)[-rule.capacity :]


def _is_same(one: Tried, other: Tried) -> bool:
    if one.candidate == other.candidate and one.parent == other.parent:
        return True
    direction = direction_of(one.strategy)
    return (
        bool(direction)
        and direction == direction_of(other.strategy)
        and _is_gain(one) == _is_gain(other)
    )


def _is_gain(item: Tried) -> bool:
    return (item.gain or 0.0) > 1.0


def _strength(item: Tried) -> float:
    gain = item.gain or 1.0
    return max(gain, 1.0 / gain)
