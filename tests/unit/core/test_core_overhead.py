"""What passes beside timed calls: by hand."""

from __future__ import annotations

import pytest

from kopt.overhead import Block, Overhead, beside_us, calm, calm_beside_us, overhead


def block(calls: int, *, wall_us: float, busy_us: float, total_us: float) -> Block:
    return Block(
        calls=calls, wall_us=wall_us, call_us=busy_us / calls, busy_us=busy_us, total_us=total_us
    )


def test_an_overhead_is_a_command_and_a_gap_with_each_call() -> None:
    one = block(10, wall_us=1_250.0, busy_us=1_000.0, total_us=1_100.0)
    assert overhead([one]) == Overhead(command_us=150.0, gap_us=10.0)
    assert overhead([one]).beside_us(10) == 25.0
    assert overhead([one]).beside_us(1) == 160.0
    assert beside_us(one) == 25.0


def test_a_disturbed_block_does_not_decide_the_overhead() -> None:
    one = block(10, wall_us=1_250.0, busy_us=1_000.0, total_us=1_100.0)
    disturbed = block(10, wall_us=9_000.0, busy_us=1_000.0, total_us=5_000.0)
    assert overhead([one, disturbed, one]) == Overhead(command_us=150.0, gap_us=10.0)


def test_an_overhead_is_never_negative_and_needs_a_block() -> None:
    backwards = block(1, wall_us=90.0, busy_us=120.0, total_us=100.0)
    assert overhead([backwards]) == Overhead(command_us=0.0, gap_us=0.0)
    with pytest.raises(ValueError, match="at least one block"):
        overhead([])


SHARES = (0.0, 0.25, 0.3, 0.5, 0.75, 1.0)


def test_a_share_of_the_blocks_shows_no_more() -> None:
    blocks = [
        block(1, wall_us=100.0 + beside, busy_us=100.0, total_us=100.0) for beside in (4, 1, 3, 2)
    ]
    assert [beside_us(calm(blocks, share=share)) for share in SHARES] == [1, 1, 2, 2, 3, 4]
    assert [calm_beside_us(blocks, calls=1, share=share) for share in SHARES] == [1, 1, 2, 2, 3, 4]


def test_a_trusted_block_s_command_is_shared_among_as_many_calls_as_the_candidate_makes() -> None:
    one = block(10, wall_us=1_250.0, busy_us=1_000.0, total_us=1_100.0)
    assert [calm_beside_us([one], calls=n, share=0.3) for n in (1, 10, 150)] == [160.0, 25.0, 11.0]


def test_what_is_calm_in_different_blocks_is_not_taken_for_one_calm_block() -> None:
    slow_command = block(10, wall_us=2_100.0, busy_us=1_000.0, total_us=1_100.0)
    slow_gaps = block(10, wall_us=2_100.0, busy_us=1_000.0, total_us=2_000.0)
    both = [slow_command, slow_gaps]
    assert calm_beside_us(both, calls=10, share=0.3) == beside_us(calm(both, share=0.3)) == 110.0
