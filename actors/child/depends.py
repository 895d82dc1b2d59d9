"""Which inputs of the reference matter everywhere: single elements changed, outputs compared.

For children of trusted code alone.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import torch

from kopt.actors.child.influence import Bits, Call, Values
from kopt.speed_of_light import TRIALS

LIMIT_S = 0.5
"""For one problem."""
LIMIT_CALLS = 12
"""Calls of the module that may be made all the same where they take longer."""
FEW = 2
"""Values that an element is given before another way to see is tried."""
LEAST_EFFECT = 16.0
"""Times the rounding of an output: what all elements of an input together do to it, by the mean of
those tried. A candidate's error may be ten times the reference's."""

Share = Literal["surely", "likely", "partly", "unknown"]
"""How much of an input is read: all, as TRIALS elements say; all, as far as is known; perhaps not
all, as one element says; nobody knows."""
Sight = Bits | Values


def inputs_that_matter(own: Call, *, exact: Callable[[], Call] | None, seed: int) -> list[Share]:
    """Say of each input tensor whether every one of TRIALS single elements changes the outputs.

    An element is replaced by the tensor's greatest value, its least, or another element, all values
    that the problem has; of real numbers also by some that lie beyond, since no other one changes a
    maximum of all. Where the bits of the outputs do not tell, their values in float64 do: one
    element of a large sum is lost in rounding, all of them are not.

    Args:
        own: the call in the problem's own precision.
        exact: makes the same call in float64, with its tensors in the same order; None where there
            is no such form.
        seed: of the elements that are tried.

    Returns:
        `surely` where all of them matter; `likely` where those do that there was time for, or where
        elements are not tried (of one byte, or a single one); `partly` where one does not;
        `unknown` where an effect cannot be seen, or there was no time.
    """
    began_s = time.monotonic()
    sights = _Sights(own, exact)
    call_s = (time.monotonic() - began_s) / Bits.NUM_CALLS
    deadline_s = began_s + max(LIMIT_S, LIMIT_CALLS * call_s)
    rng = random.Random(seed)
    found: list[Share] = ["unknown" if _can_be_tried(each) else "likely" for each in own.tensors]
    trials = {
        number: _Trials(sights.bits) for number, share in enumerate(found) if share == "unknown"
    }
    while trials:  # of each input one element, then of each another: some time for all
        for number, each in list(trials.items()):
            if time.monotonic() > deadline_s:
                return found
            found[number] = each.go_on(number, sights, rng)
            if each.is_over:
                del trials[number]
    return found


class _Sights:
    """The ways to see what an element does."""

    def __init__(self, own: Call, exact: Callable[[], Call] | None) -> None:
        self.bits = Bits(own)
        self._exact = exact
        self._values: Values | None = None

    def better_than(self, sight: Sight) -> Values | None:
        """Return the values in float64, made the first time; None where they cannot be had."""
        if self._exact is None or isinstance(sight, Values):
            return None
        if self._values is None:
            try:
                self._values = Values(self._exact(), dtypes=self.bits.dtypes)
            except RuntimeError:  # it does not fit beside the rest
                self._exact = None
        return self._values

    def most_values(self, sight: Sight) -> int | None:
        """Return how many values an element is given at most; None for all there are."""
        is_last = self._exact is None or sight.sees_all or isinstance(sight, Values)
        return None if is_last else FEW


@dataclass(slots=True)
class _Trials:
    """The elements of one input that were tried, all of them seen in one way."""

    sight: Sight
    num_seen: int = 0
    effects: float = 0.0
    is_over: bool = False

    def go_on(self, number: int, sights: _Sights, rng: random.Random) -> Share:
        """Try another element, and return what is known of the input by now."""
        effect = _effect(self.sight, number, rng, most=sights.most_values(self.sight))
        if effect:
            self.num_seen += 1
            self.effects += effect
            self.is_over = self.num_seen == TRIALS
            if self.effects < LEAST_EFFECT * self.num_seen:
                return "partly"
            return "surely" if self.is_over else "likely"
        if self.sight.sees_all:
            self.is_over = True
            return "partly"
        better = sights.better_than(self.sight)
        self.is_over = better is None
        if better is not None:  # from the beginning: what rounding let pass by chance is no measure
            self.sight, self.num_seen, self.effects = better, 0, 0.0
        return "unknown"


def _effect(sight: Sight, number: int, rng: random.Random, *, most: int | None) -> float:
    """The greatest effect of an element that is given one of several values; 0 for none."""
    flat = sight.tensors[number].view(-1)
    at = rng.randrange(flat.numel())
    held = flat[at].clone()
    greatest = 0.0
    try:
        for other in islice(_others(flat, rng), most):
            flat[at] = other
            greatest = max(greatest, sight.effect(flat.numel()))
            if greatest >= LEAST_EFFECT:
                break
    finally:
        flat[at] = held
    return greatest


def _others(flat: torch.Tensor, rng: random.Random) -> Iterator[torch.Tensor]:
    greatest, least = flat.max(), flat.min()
    yield greatest
    yield least
    yield flat[rng.randrange(flat.numel())].clone()
    if flat.is_floating_point():
        yield greatest + (greatest - least)
        yield least - (greatest - least)


def _can_be_tried(tensor: torch.Tensor) -> bool:
    return tensor.numel() > 1 and not tensor.is_complex() and tensor.element_size() > 1
