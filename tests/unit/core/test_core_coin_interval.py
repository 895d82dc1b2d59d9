"""The interval that fair coins give: levels by counting, coverage by every assignment of signs."""

from __future__ import annotations

import itertools
import math

import pytest

from kopt.coin_interval import (
    ERROR,
    center_of,
    is_look,
    level_at,
    looks,
    outer_rank,
    shift,
    walsh_means,
)


def test_the_looks_of_a_race_together_spend_no_more_than_both_sides_have() -> None:
    spent = math.fsum(level for _, level in itertools.islice(looks(), 60))
    assert 2.0 * spent <= ERROR
    assert [pairs for pairs, _ in itertools.islice(looks(), 7)] == [10, 14, 20, 28, 40, 80, 160]


def test_a_race_that_ends_between_two_looks_spends_what_is_left() -> None:
    assert (is_look(10), is_look(11), is_look(14), is_look(80)) == (True, False, True, True)
    assert (level_at(10), level_at(14)) == (1 / 1_024, 3 / 16_384)
    assert level_at(9) == 1 / 600
    assert level_at(13) == pytest.approx(1 / 600 - 1 / 1_024)
    assert level_at(41) == pytest.approx(1 / 600 - 1 / 1_024 - 3 / 16_384 - 3 * 1.3e-4)


@pytest.mark.parametrize(
    ("num", "level", "rank"),
    [
        (9, 1 / 1_024, None),  # all nine agree in one of 512
        (10, 1 / 1_024, 0),
        (14, 3 / 16_384, 2),  # negative ranks: none, {1}, {2}
        (3, 0.25, 1),
        (3, 0.24, 0),
    ],
)
def test_a_rank_leaves_out_no_more_than_its_level(num, level, rank) -> None:
    assert outer_rank(num, level=level) == rank


def test_means_of_three_values_are_six_and_in_order() -> None:
    means = walsh_means([3.0, 1.0, 2.0])
    assert means == [1.0, 1.5, 2.0, 2.0, 2.5, 3.0]
    assert center_of(means) == 2.0
    assert center_of([1.0, 2.0, 4.0, 5.0]) == 3.0


@pytest.mark.parametrize(
    "sizes",
    [
        [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2],
        [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9],
        [5.0] * 10,
        [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0],
    ],
)
def test_whatever_the_sizes_few_assignments_of_signs_leave_nothing_out(sizes) -> None:
    level = 0.01
    beside = {"low": 0, "high": 0}
    for signs in itertools.product((-1.0, 1.0), repeat=10):
        found = shift([sign * size for sign, size in zip(signs, sizes, strict=True)], level=level)
        assert found is not None
        beside["low"] += found.low > 0.0
        beside["high"] += found.high < 0.0
    assert beside["low"] == beside["high"] <= level * 1_024


def test_a_shift_moves_with_the_values_and_holds_its_center() -> None:
    values = [0.3, -0.1, 0.2, 0.9, -0.5, 0.4, 0.0, 0.1, 0.6, 0.7]
    here = shift(values, level=0.01)
    there = shift([value + 5.0 for value in values], level=0.01)
    assert here is not None
    assert there is not None
    assert there.low == pytest.approx(here.low + 5.0)
    assert there.center == pytest.approx(here.center + 5.0)
    assert here.low < here.center < here.high


def test_too_few_values_have_no_interval_and_what_is_none_has_no_shift() -> None:
    assert shift([1.0, 2.0], level=0.001) is None
    with pytest.raises(ValueError, match="finite values"):
        shift([1.0, math.inf], level=0.1)
    with pytest.raises(ValueError, match="at least one"):
        shift([], level=0.1)
