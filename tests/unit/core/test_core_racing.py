"""Paired times to a speed-up, and the race's stop rule on seeded draws."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from kopt.racing import Race, pair_ratios, speedup_interval, trimmed_mean

BLOCK = 2


def run_race(race: Race, *, gain: float, sigma: float, rng: random.Random) -> str:
    """Race a candidate of a true log gain, in blocks, with heavy-tailed noise."""
    while race.state == "continue":
        race.observe([gain + sigma * noise(rng) for _ in range(BLOCK)])
    return race.state


def noise(rng: random.Random) -> float:
    """One draw of Student's t with 4 degrees of freedom, scaled to a deviation of 1."""
    return rng.gauss(0.0, 1.0) / math.sqrt(rng.gammavariate(2.0, 2.0) / 4.0) / math.sqrt(2.0)


def races(trials: int, *, gain: float, sigma: float, seed: int, lasting: float = 0.0):
    """Share of races, as evaluations run them, whose report is a win: by interval, by gate 4."""
    rng = np.random.default_rng(seed)
    drawn = rng.standard_t(4, (trials, 40)) / math.sqrt(2.0)
    for pair in range(1, 40):
        drawn[:, pair] = lasting * drawn[:, pair - 1] + math.sqrt(1 - lasting**2) * drawn[:, pair]
    wins = {"interval": 0, "gate": 0}
    for ratios in (gain + sigma * drawn).tolist():
        race = Race(min_pairs=6, max_pairs=40)
        while race.state == "continue":
            race.observe(ratios[len(race.ratios) : len(race.ratios) + BLOCK])
        speedup, (low, _) = speedup_interval(race.ratios)
        wins["interval"] += low > 1.0
        wins["gate"] += low > 1.0 and speedup >= 1.03
    return {rule: count / trials for rule, count in wins.items()}


def test_a_pair_is_the_log_of_baseline_over_candidate() -> None:
    assert pair_ratios([200.0, 100.0], candidate_us=[100.0, 100.0]) == [math.log(2.0), 0.0]


@pytest.mark.parametrize("times", [[0.0], [-1.0], [math.nan], [math.inf]])
def test_a_time_that_is_none_makes_no_pair(times) -> None:
    with pytest.raises(ValueError, match="finite and above 0"):
        pair_ratios([1.0], candidate_us=times)


def test_times_without_a_partner_make_no_pair() -> None:
    with pytest.raises(ValueError, match="2 of the baseline and 1 of the candidate"):
        pair_ratios([1.0, 2.0], candidate_us=[1.0])


def test_the_trimmed_mean_of_ten_leaves_out_the_least_and_the_greatest() -> None:
    trimmed = trimmed_mean([-1000.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1000.0])
    assert trimmed.mean == 4.5
    assert trimmed.num_kept == 8
    # winsorised: 1 1 2 3 4 5 6 7 8 8, mean 4.5, squares 2·(12.25 + 12.25 + 6.25 + 2.25 + 0.25)
    assert trimmed.std_error == pytest.approx(math.sqrt(66.5 / (8 * 7)))


def test_three_values_are_too_few_to_trim() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        trimmed_mean([1.0, 2.0, 3.0])


def test_equal_ratios_give_their_speedup_and_no_width() -> None:
    for count in (2, 5, 6, 9, 10, 40):
        speedup, (low, high) = speedup_interval([math.log(1.5)] * count)
        assert speedup == pytest.approx(1.5)
        assert low == pytest.approx(1.5)
        assert high == pytest.approx(1.5)


def test_four_pairs_are_bounded_by_no_less_than_their_range() -> None:
    ratios = [math.log(value) for value in (0.5, 1.2, 1.2, 2.0)]
    # Kept: 1.2 twice; what is left does not vary.
    speedup, (low, high) = speedup_interval(ratios)
    assert speedup == pytest.approx(1.2)
    assert (low, high) == (pytest.approx(0.5), pytest.approx(2.0))


def test_six_pairs_have_the_half_width_of_three_and_a_half_errors() -> None:
    ratios = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    # Kept: 0.1 to 0.4, mean 0.25. Winsorised: 0.1 twice, 0.2, 0.3, 0.4 twice; squares
    # 4 of 0.0225 and 2 of 0.0025, 0.095; se = sqrt(0.095 / (4 * 3)).
    # h = 3.5 * (1 + 13.25 / 12) * se.
    half = 3.5 * (1.0 + 13.25 / 12.0) * math.sqrt(0.095 / 12.0)
    speedup, (low, high) = speedup_interval(ratios)
    assert math.log(speedup) == pytest.approx(0.25)
    assert math.log(low) == pytest.approx(0.25 - half)
    assert math.log(high) == pytest.approx(0.25 + half)


def test_one_preempted_pair_of_twenty_does_not_move_the_speedup() -> None:
    ratios = [math.log(1.2)] * 19 + [math.log(0.01)]
    speedup, (low, _) = speedup_interval(ratios)
    assert speedup == pytest.approx(1.2)
    assert low == pytest.approx(1.2)


def test_one_pair_gives_no_interval() -> None:
    with pytest.raises(ValueError, match="at least two pairs, got 1"):
        speedup_interval([0.1])


@pytest.mark.parametrize("count", [6, 10, 12, 20, 40])
def test_the_interval_covers_the_true_speedup_nearly_always(count) -> None:
    rng = random.Random(count)
    trials = 1_000
    covered = 0
    for _ in range(trials):
        _, (low, high) = speedup_interval([0.05 + 0.02 * noise(rng) for _ in range(count)])
        covered += low <= math.exp(0.05) <= high
    assert covered / trials >= 0.99


def test_equal_kernels_are_called_faster_at_most_once_in_three_hundred_races() -> None:
    rng = random.Random(1)
    trials = 1_500
    wins = sum(
        run_race(Race(min_pairs=6, max_pairs=40), gain=0.0, sigma=sigma, rng=rng) == "faster"
        for sigma in (0.005, 0.01, 0.03)
        for _ in range(trials // 3)
    )
    assert wins <= trials / 300


@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.03])
def test_looking_again_and_again_makes_no_win_of_an_equal_kernel(sigma) -> None:
    # A 95 % interval, right for a number of pairs fixed beforehand, is above 1 in some 7 of 300.
    found = races(4_000, gain=0.0, sigma=sigma, seed=3)
    assert found["interval"] <= 1 / 300
    assert found["gate"] <= 1 / 2_000


@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.03])
def test_a_true_gain_of_three_per_cent_is_above_one_beyond_doubt(sigma) -> None:
    assert races(800, gain=math.log(1.03), sigma=sigma, seed=4)["interval"] > 0.98


def test_noise_that_lasts_from_pair_to_pair_is_what_the_gate_is_for() -> None:
    # At 3 %, each pair's noise 0.3 of the last one's: the interval is too sure, the gate is not.
    found = races(2_000, gain=0.0, sigma=0.03, seed=5, lasting=0.3)
    assert found["interval"] <= 5 / 300
    assert found["gate"] <= 1 / 300


def test_a_gain_of_three_per_cent_is_found_at_one_per_cent_noise() -> None:
    rng = random.Random(2)
    races = [Race(min_pairs=6, max_pairs=40) for _ in range(300)]
    found = [run_race(race, gain=math.log(1.03), sigma=0.01, rng=rng) for race in races]
    assert found.count("faster") > 0.95 * len(races)
    assert sum(len(race.ratios) for race in races) / len(races) < 20


def test_a_clear_winner_and_a_clear_loser_end_at_the_fewest_pairs() -> None:
    for ratio, outcome in ((0.5, "faster"), (-0.5, "slower"), (0.0, "tie")):
        race = Race(min_pairs=6, max_pairs=40)
        assert race.observe([ratio + 1e-4 * step for step in range(5)]) == "continue"
        assert race.observe([ratio]) == outcome
        assert len(race.ratios) == 6


def test_a_race_that_stays_open_is_a_tie_at_the_most_pairs() -> None:
    race = Race(min_pairs=4, max_pairs=8)
    assert race.observe([0.5, -0.5, 0.5, -0.4]) == "continue"
    assert race.observe([0.5, -0.5, 0.5]) == "continue"
    assert race.observe([-0.5]) == "tie"


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"min_pairs": 3, "max_pairs": 8}, "got 3 and 8"),
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
