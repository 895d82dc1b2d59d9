"""What a candidate hides beside its calls: found pair by pair, whatever the host does meanwhile."""

from __future__ import annotations

import random

import pytest

from kopt.hidden_time import Slack, differences_us, hidden_us
from kopt.overhead import Block

SLACK = Slack(middle=0.16, surely=0.05)


def of(beside_us: float, *, call_us: float = 100.0, calls: int = 8) -> Block:
    wall_us = calls * (call_us + beside_us)
    return Block(
        calls=calls,
        wall_us=wall_us,
        call_us=call_us,
        busy_us=calls * call_us,
        total_us=wall_us,
    )


def test_a_difference_is_that_of_the_blocks_next_to_each_other() -> None:
    mine, theirs = [of(250.0), of(650.0)], [of(220.0), of(600.0)]
    assert differences_us(mine, theirs=theirs) == pytest.approx([30.0, 50.0])


def test_blocks_of_other_lengths_are_compared_by_call_and_command() -> None:
    command = Block(calls=4, wall_us=500.0, call_us=50.0, busy_us=200.0, total_us=400.0)
    # Beside each of four calls 25 us of the command and 50 us more; of eight, 12.5 and 50.
    assert differences_us([of(80.0)], theirs=[command]) == pytest.approx([17.5])


def test_without_pairs_the_middle_of_the_baselines_blocks_counts() -> None:
    theirs = [of(200.0), of(220.0), of(900.0)]
    assert differences_us([of(230.0)] * 2, theirs=theirs) == pytest.approx([10.0, 10.0])


def test_what_an_honest_candidate_may_leave_behind_is_not_hidden() -> None:
    # Ten us of 220 lie below 5 %, and the middle may reach 35 us.
    mine, theirs = [of(230.0)] * 14, [of(220.0)] * 14
    assert hidden_us(mine, theirs=theirs, slack=SLACK) == 0.0


def test_what_surely_passed_is_added_to_the_calls() -> None:
    mine, theirs = [of(260.0)] * 14, [of(220.0)] * 14
    assert hidden_us(mine, theirs=theirs, slack=SLACK) == pytest.approx(40.0 - 11.0)


def test_a_host_that_drifts_shows_in_no_difference() -> None:
    theirs = [of(220.0 + 50.0 * at) for at in range(14)]
    mine = [of(225.0 + 50.0 * at) for at in range(14)]
    assert hidden_us(mine, theirs=theirs, slack=SLACK) == 0.0


def test_few_pairs_show_their_middle_alone() -> None:
    # Four fair signs agree in one of sixteen races: no lower limit at 5 %.
    mine, theirs = [of(260.0)] * 4, [of(220.0)] * 4
    assert hidden_us(mine, theirs=theirs, slack=SLACK) == pytest.approx(40.0 - 35.2)


@pytest.mark.parametrize(("more_us", "least", "most"), [(10.0, 0, 10), (60.0, 195, 200)])
def test_races_as_noisy_as_a_gpus_find_what_is_hidden_and_little_else(more_us, least, most) -> None:
    rng = random.Random(5)
    found = 0
    for _ in range(200):
        theirs = [of(220.0 + rng.gauss(0.0, 18.0)) for _ in range(14)]
        mine = [of(220.0 + more_us + rng.gauss(0.0, 18.0)) for _ in range(14)]
        found += hidden_us(mine, theirs=theirs, slack=SLACK) > 5.0
    assert least <= found <= most
