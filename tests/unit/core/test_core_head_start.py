"""How far the host goes ahead of a GPU: as far as launching takes, for both sides alike."""

from __future__ import annotations

import pytest

from kopt.head_start import (
    FIRST_US,
    MOST_US,
    UNTRUSTED_MOST_US,
    HeadStart,
    is_starved,
    make_alike,
)
from kopt.overhead import Block


def of(starved: int, *, calls: int = 8) -> Block:
    return Block(
        calls=calls,
        wall_us=1_000.0,
        call_us=10.0,
        busy_us=80.0,
        total_us=900.0,
        starved=starved,
    )


@pytest.mark.parametrize(("starved", "is_so"), [(0, False), (2, False), (3, True), (8, True)])
def test_a_block_is_starved_where_more_than_a_quarter_of_its_calls_are(starved, is_so) -> None:
    assert is_starved(of(starved)) is is_so


def test_a_host_that_keeps_up_pauses_no_longer() -> None:
    start = HeadStart()
    assert not start.learn([of(0)])
    assert start.needed_us == start.pause_us == FIRST_US


def test_a_pause_that_is_too_short_is_doubled() -> None:
    start = HeadStart()
    assert start.learn([of(8)])
    assert start.needed_us == 2 * FIRST_US


def test_one_starved_block_of_a_race_is_a_hiccup() -> None:
    start = HeadStart()
    assert not start.learn([of(8), of(0)])
    assert start.learn([of(8), of(0), of(8)])


def test_fewer_than_a_tenth_of_the_blocks_are_left_as_they_are() -> None:
    assert not HeadStart().learn([of(8)] * 2 + [of(0)] * 19)
    assert HeadStart().learn([of(8)] * 2 + [of(0)] * 18)


@pytest.mark.parametrize(("most_us", "doublings"), [(MOST_US, 4), (UNTRUSTED_MOST_US, 2)])
def test_a_call_that_waits_for_the_device_gets_the_first_pause(most_us, doublings) -> None:
    start = HeadStart(most_us=most_us)
    for _ in range(doublings):
        assert start.learn([of(8)])
        start.pause_us = start.needed_us
    assert start.pause_us == most_us
    assert not start.learn([of(8)])
    assert start.is_vain
    assert start.needed_us == FIRST_US
    assert not start.learn([of(8)])


def test_what_was_vain_on_a_busy_host_is_tried_again_later() -> None:
    start = HeadStart(needed_us=FIRST_US, pause_us=4 * FIRST_US, is_vain=True)
    start.begin()
    assert start.pause_us == FIRST_US
    assert start.learn([of(8)])


def test_both_sides_pause_for_as_long_as_one_needs() -> None:
    mine, theirs = HeadStart(most_us=UNTRUSTED_MOST_US), HeadStart(needed_us=4 * FIRST_US)
    make_alike(mine, theirs)
    assert mine.pause_us == theirs.pause_us == 4 * FIRST_US
    # Starved behind a pause that is longer than its word is worth: no word of its is.
    assert not mine.learn([of(8)] * 2)
    make_alike(mine, theirs)
    assert mine.pause_us == 4 * FIRST_US
