"""The experience queue: thresholds, order, directions (KernelOPT §4.5, Eq. 6)."""

from __future__ import annotations

import pytest

from kopt.memory.experience import ExperienceRule, experience_of, is_kept
from kopt.memory.tried import Tried

RULE = ExperienceRule()


def item(number: int, gain: float | None, *, strategy: str | None = None, over: float = 1.0):
    return Tried(
        candidate=f"c{number}",
        parent="p",
        expansion=number,
        strategy=f"way {'abcdefghijklmnop'[number]}" if strategy is None else strategy,
        language="triton",
        kind="incorrect" if gain is None else "correct",
        reason="",
        speedup=None if gain is None else gain * over,
        speedup_ci=None if gain is None else (gain * over, gain * over),
        over=over,
    )


@pytest.mark.parametrize(
    ("gain", "kept"),
    [
        (1.05, True),
        (1.049, False),
        (1.0, False),
        (0.84, False),  # 1 / 0.84 = 1.19
        (0.83, True),  # 1 / 0.83 = 1.205
        (None, False),
        (0.0, False),
    ],
)
def test_gains_from_5_and_losses_from_20_per_cent_are_kept(gain: float | None, kept: bool) -> None:  # noqa: FBT001
    assert is_kept(gain, rule=RULE) is kept


def test_a_gain_is_against_what_was_changed_and_not_against_the_baseline() -> None:
    # 2x the baseline, from a parent with 2.4x: a loss of 1.2.
    assert experience_of([item(0, 2.0 / 2.4, over=2.4)], rule=RULE)
    assert not experience_of([item(0, 1.02, over=2.4)], rule=RULE)


def test_the_oldest_of_nine_leaves_a_queue_of_eight() -> None:
    items = [item(number, 1.1 + number / 100) for number in range(9)]
    assert experience_of(items, rule=RULE) == tuple(items[1:])
    assert experience_of(items, rule=ExperienceRule(capacity=2)) == tuple(items[-2:])


def test_of_one_direction_the_stronger_stays_and_takes_its_place_at_the_end() -> None:
    tile, other = item(0, 1.3, strategy="Tile 64x64"), item(1, 1.1)
    better = item(2, 1.5, strategy="tile 128x128")
    worse = item(3, 1.2, strategy="tile 32x32")
    assert experience_of([tile, other, better], rule=RULE) == (other, better)
    assert experience_of([tile, other, worse], rule=RULE) == (tile, other)


def test_a_gain_and_a_loss_of_one_direction_are_both_kept() -> None:
    gain, loss = item(0, 1.3, strategy="unroll"), item(1, 0.5, strategy="unroll")
    assert experience_of([gain, loss], rule=RULE) == (gain, loss)


def test_strategies_without_words_are_no_direction() -> None:
    items = [item(0, 1.3, strategy=""), item(1, 1.2, strategy="")]
    assert experience_of(items, rule=RULE) == tuple(items)
