"""Paired times to a speed-up with its interval, and the race's stop rule: by hand."""

from __future__ import annotations

import math

import pytest

from kopt.racing import Race, pair_ratios, speedup_interval


def test_a_pair_is_the_log_of_baseline_over_candidate() -> None:
    assert pair_ratios([200.0, 100.0], candidate_us=[100.0, 100.0]) == [math.log(2.0), 0.0]


@pytest.mark.parametrize("times", [[0.0], [-1.0], [math.nan], [math.inf]])
def test_a_time_that_is_none_makes_no_pair(times) -> None:
    with pytest.raises(ValueError, match="finite and above 0"):
        pair_ratios([1.0], candidate_us=times)


def test_times_without_a_partner_make_no_pair() -> None:
    with pytest.raises(ValueError, match="2 of the baseline and 1 of the candidate"):
        pair_ratios([1.0, 2.0], candidate_us=[1.0])


def test_equal_ratios_give_their_speedup_and_no_width() -> None:
    for count in (10, 12, 14, 40, 41):
        speedup, (low, high) = speedup_interval([math.log(1.5)] * count)
        assert speedup == pytest.approx(1.5)
        assert low == pytest.approx(1.5)
        assert high == pytest.approx(1.5)


@pytest.mark.parametrize("count", [1, 2, 6, 9])
def test_fewer_than_ten_pairs_never_leave_one_out(count) -> None:
    # Nine coins agree in one of 256 races.
    faster = [math.log(20.0)] * (count - 1) + [math.log(30.0)]
    assert speedup_interval(faster)[1] == (pytest.approx(1.0), pytest.approx(30.0))
    slower = [-each for each in faster]
    assert speedup_interval(slower)[1] == (pytest.approx(1.0 / 30.0), pytest.approx(1.0))


def test_ten_pairs_have_their_range_as_interval_and_the_middle_of_their_means_as_center() -> None:
    ratios = [0.01 * each for each in (3, 1, 4, 1.5, 9, 2.6, 5, 3.5, 8, 7)]
    speedup, (low, high) = speedup_interval(ratios)
    assert math.log(low) == pytest.approx(0.01)
    assert math.log(high) == pytest.approx(0.09)
    means = sorted((a + b) / 2 for i, a in enumerate(ratios) for b in ratios[i:])
    assert math.log(speedup) == pytest.approx(means[27])  # the 28th of 55


def test_one_preempted_pair_of_twenty_does_not_move_the_speedup() -> None:
    ratios = [math.log(1.2)] * 19 + [math.log(0.01)]
    speedup, (low, _) = speedup_interval(ratios)
    assert speedup == pytest.approx(1.2)
    # Of the 210 means, the 20 with the preempted pair are least; the interval leaves out 14.
    assert low < 1.0


def test_the_interval_reaches_over_the_net_ratios_but_the_speedup_is_that_of_the_clock() -> None:
    ratios = [math.log(1.5)] * 12
    speedup, (low, high) = speedup_interval(ratios, net_ratios=[math.log(0.9)] * 12)
    assert speedup == pytest.approx(1.5)
    assert (low, high) == (pytest.approx(0.9), pytest.approx(1.5))
    with pytest.raises(ValueError, match="expected 12 net ratios or none, got 11"):
        speedup_interval(ratios, net_ratios=[0.0] * 11)


def test_what_two_processes_may_differ_by_is_added_on_either_side() -> None:
    speedup, (low, high) = speedup_interval([math.log(1.2)] * 40, apart=math.log(1.25))
    assert speedup == pytest.approx(1.2)
    assert (low, high) == (pytest.approx(0.96), pytest.approx(1.5))


def test_no_pair_gives_no_interval() -> None:
    with pytest.raises(ValueError, match="at least one; got 0"):
        speedup_interval([])


def test_a_clear_winner_and_a_clear_loser_end_at_the_fewest_pairs() -> None:
    for ratio, outcome in ((0.5, "faster"), (-0.5, "slower"), (0.0, "tie")):
        race = Race(min_pairs=6, max_pairs=40)
        for step in range(9):
            assert race.observe([ratio + 1e-4 * step]) == "continue"
        assert race.observe([ratio]) == outcome
        assert len(race.ratios) == 10


def test_a_win_by_the_clock_alone_is_none() -> None:
    race = Race(min_pairs=10, max_pairs=14)
    for _ in range(13):
        assert race.observe([0.5], net_ratios=[0.0]) == "continue"
    assert race.observe([0.5], net_ratios=[0.0]) == "tie"
    assert race.net_ratios == (0.0,) * 14


def test_a_race_that_stays_open_is_a_tie_at_the_most_pairs() -> None:
    race = Race(min_pairs=4, max_pairs=12)
    for pair in range(11):
        assert race.observe([0.5 if pair % 2 else -0.5]) == "continue"
    assert race.observe([-0.5]) == "tie"


def test_a_race_of_few_pairs_decides_nothing() -> None:
    race = Race(min_pairs=4, max_pairs=4)
    assert race.observe([0.5] * 3) == "continue"
    assert race.observe([0.5]) == "tie"


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"min_pairs": 0, "max_pairs": 8}, "got 0 and 8"),
        ({"min_pairs": 9, "max_pairs": 8}, "got 9 and 8"),
        ({"min_pairs": 4, "max_pairs": 8, "margin": -0.1}, "margin"),
        ({"min_pairs": 4, "max_pairs": 8, "margin": math.nan}, "margin"),
    ],
)
def test_a_race_with_impossible_bounds_is_refused(bounds, words) -> None:
    with pytest.raises(ValueError, match=words):
        Race(**bounds)


def test_a_ratio_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="must be finite"):
        Race(min_pairs=4, max_pairs=8).observe([math.nan])


def test_net_ratios_are_of_every_pair_or_of_none() -> None:
    race = Race(min_pairs=4, max_pairs=8)
    race.observe([0.1])
    with pytest.raises(ValueError, match="of all 2 pairs or none, got 1"):
        race.observe([0.1], net_ratios=[0.1])
