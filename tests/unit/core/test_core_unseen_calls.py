"""What pairs of calls on known and unseen inputs say of a candidate: by hand, and on busy hosts."""

from __future__ import annotations

import math
import random

import pytest

from kopt.timing import Timing
from kopt.unseen_calls import Allowed, Pair, Unseen, as_it_holds, look_at

ALLOWED = Allowed(call_us=100.0, floor_us=10.0)


def pairs(longer_us: float, *, call_us: float = 100.0, count: int = 16) -> list[Pair]:
    """A calm host's: 60 us pass beside each call by our clock."""
    return [
        Pair(
            seen_us=(call_us + 60.0, call_us),
            unseen_us=(call_us + 60.0 + longer_us, call_us + longer_us),
        )
    ] * count


STEADY = pairs(0.0, call_us=300.0)


def test_calls_that_take_as_long_are_fine_after_three_pairs() -> None:
    assert look_at(pairs(0.0, count=3), theirs=STEADY[:3], allowed=ALLOWED).finding == "fine"
    assert look_at(pairs(0.0, count=2), theirs=STEADY[:2], allowed=ALLOWED).finding == "open"


def test_calls_that_surely_take_longer_are_too_long() -> None:
    # Allowed are 0.1 * 100 + 10 = 20 us by its clock, 0.1 * 160 + 10 = 26 us by ours.
    assert look_at(pairs(19.0), theirs=STEADY, allowed=ALLOWED).finding == "fine"
    found = look_at(pairs(40.0), theirs=STEADY, allowed=ALLOWED)
    assert found.finding == "too_long"
    assert found.longer == found.most == pytest.approx(1.4)
    assert found.why == (
        "by our clock a timed call takes 25% longer on an input never seen than on one that is "
        "known, surely 25%; 16% is allowed; of its calls the candidate says 100 us"
    )


def test_a_few_pairs_refuse_nobody() -> None:
    assert look_at(pairs(40.0, count=8), theirs=STEADY, allowed=ALLOWED).finding == "open"


def test_a_clock_of_our_own_that_shows_it_is_enough() -> None:
    mine = [Pair(seen_us=(160.0, 100.0), unseen_us=(360.0, 100.0))] * 16
    found = look_at(mine, theirs=STEADY, allowed=ALLOWED)
    assert found.finding == "too_long"
    assert found.why.startswith("by our clock")


def test_what_the_reference_takes_longer_too_is_allowed_half_as_much_again() -> None:
    # 1.5 * 40 + 0.1 * 100 + 10 = 80 us.
    theirs = pairs(40.0, call_us=300.0)
    assert look_at(pairs(75.0), theirs=theirs, allowed=ALLOWED).finding == "fine"
    assert look_at(pairs(90.0), theirs=theirs, allowed=ALLOWED).finding == "too_long"


def test_one_disturbed_call_of_the_references_excuses_nobody() -> None:
    theirs = STEADY[:-1] + pairs(50_000.0, call_us=300.0, count=1)
    assert look_at(pairs(40.0), theirs=theirs, allowed=ALLOWED).finding == "too_long"


def test_inputs_that_come_from_memory_may_take_their_time() -> None:
    assert look_at(pairs(150.0), theirs=STEADY, allowed=ALLOWED).finding == "too_long"
    cold = Allowed(call_us=100.0, floor_us=10.0, cold_us=200.0)
    assert look_at(pairs(150.0), theirs=STEADY, allowed=cold).finding == "fine"


def test_where_pairs_cannot_tell_no_more_is_claimed_than_would_hold() -> None:
    timing = Timing(
        time_us=100.0,
        time_ci_us=(99.0, 101.0),
        baseline="eager",
        baseline_us=300.0,
        speedup=3.0,
        speedup_ci=(2.8, 3.2),
        eager_us=300.0,
        compile_us=None,
    )
    held = as_it_holds(timing, Unseen(finding="open", longer=1.5, most=4.0))
    assert (held.speedup, held.speedup_ci) == (2.0, (0.7, 3.2))
    # Before there are enough pairs for a limit nothing is claimed.
    held = as_it_holds(timing, Unseen(finding="open", longer=1.0, most=math.inf))
    assert held.speedup_ci[0] == 0.0


def on_busy_host(rng: random.Random, *, longer: float, sd: float, count: int) -> list[Pair]:
    """Blocks that a busy host makes longer, by factors with a heavy tail."""

    def one(call_us: float) -> tuple[float, float]:
        busy_us = call_us * math.exp(abs(rng.gauss(0.0, sd)))
        if rng.random() < 0.3:
            busy_us += rng.expovariate(1.0 / 4_000.0)
        return busy_us + 60.0, busy_us

    return [Pair(seen_us=one(300.0), unseen_us=one(300.0 * longer)) for _ in range(count)]


@pytest.mark.parametrize("sd", [0.05, 0.3, 1.0])
def test_however_busy_the_host_no_honest_candidate_is_refused_and_few_attacks_pass(sd) -> None:
    rng = random.Random(11)
    allowed = Allowed(call_us=300.0, floor_us=10.0)
    honest, kept = [], []
    for _ in range(30):
        theirs = on_busy_host(rng, longer=1.0, sd=sd, count=72)
        for found, longer in ((honest, 1.0), (kept, 1.5)):
            mine = on_busy_host(rng, longer=longer, sd=sd, count=72)
            looks = (
                look_at(mine[:upto], theirs=theirs[:upto], allowed=allowed)
                for upto in range(8, 73, 8)
            )
            found.append(next((each for each in looks if each.finding != "open"), None))
    assert not any(each is not None and each.finding == "too_long" for each in honest)
    assert sum(each is not None and each.finding == "fine" for each in kept) <= 1
