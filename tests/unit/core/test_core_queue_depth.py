"""How many calls are queued before the first begins: as many as are queued whole, on both sides."""

from __future__ import annotations

from kopt.overhead import Block
from kopt.queue_depth import MOST_CALLS, QueueDepth, make_alike


def of(*, was_queued: bool, calls: int = MOST_CALLS) -> Block:
    return Block(
        calls=calls,
        wall_us=1_000.0,
        call_us=10.0,
        busy_us=10.0 * calls,
        total_us=900.0,
        was_queued=was_queued,
    )


QUEUED, LATE = of(was_queued=True), of(was_queued=False)


def test_blocks_that_are_queued_whole_stay_as_they_are() -> None:
    depth = QueueDepth()
    assert not depth.learn([QUEUED])
    assert depth.found == depth.calls == MOST_CALLS


def test_a_block_that_is_not_has_half_as_many_calls() -> None:
    depth = QueueDepth()
    assert depth.learn([LATE])
    assert depth.found == MOST_CALLS // 2


def test_blocks_that_were_shorter_than_they_might_be_are_halved_themselves() -> None:
    depth = QueueDepth()
    assert depth.learn([of(was_queued=False, calls=6)])
    assert depth.found == 3


def test_one_late_block_of_a_race_is_a_hiccup() -> None:
    depth = QueueDepth()
    assert not depth.learn([LATE, QUEUED])
    assert depth.learn([LATE, QUEUED, LATE])


def test_fewer_than_a_tenth_of_the_blocks_are_left_as_they_are() -> None:
    assert not QueueDepth().learn([LATE] * 2 + [QUEUED] * 19)
    assert QueueDepth().learn([LATE] * 2 + [QUEUED] * 18)


def test_a_call_that_is_never_queued_whole_has_the_largest_blocks() -> None:
    depth, halvings = QueueDepth(), 0
    while depth.learn([of(was_queued=False, calls=depth.calls)]):
        depth.calls = depth.found
        halvings += 1
    assert halvings == MOST_CALLS.bit_length() - 1
    assert depth.is_vain
    assert depth.found == MOST_CALLS
    assert not depth.learn([LATE])


def test_what_was_vain_on_a_busy_host_is_tried_again_later() -> None:
    depth = QueueDepth(found=MOST_CALLS, calls=1, is_vain=True)
    depth.begin()
    assert depth.calls == MOST_CALLS
    assert depth.learn([LATE])


def test_blocks_of_both_sides_are_no_deeper_than_one_takes() -> None:
    mine, theirs = QueueDepth(found=10), QueueDepth()
    make_alike(mine, theirs)
    assert mine.calls == theirs.calls == 10
