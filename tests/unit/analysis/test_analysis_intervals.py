"""Bootstrap and Wilson's intervals."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from kopt.analysis.bootstrap import interval_of_geomean, interval_of_mean
from kopt.analysis.proportion import fast_p, share_of, wilson
from kopt.testing.sample_trials import sample_trial


def test_the_same_seed_gives_the_same_interval_and_another_a_close_one() -> None:
    groups = [[float(n), n + 1.0] for n in range(20)]
    first = interval_of_mean(groups, seed=3)
    assert first == interval_of_mean(groups, seed=3)
    other = interval_of_mean(groups, seed=4)
    assert first != other
    assert other == pytest.approx(first, rel=0.05)


def test_an_interval_is_close_to_the_normal_one_where_problems_are_many() -> None:
    # One seed a problem: the bootstrap's standard error is s / sqrt(n) with s of n - 0 degrees.
    values = np.random.default_rng(0).normal(1.0, 2.0, size=400)
    found = interval_of_mean([[float(value)] for value in values], seed=0)
    half = 1.96 * float(values.std()) / math.sqrt(400)
    mean = float(values.mean())
    assert found == pytest.approx((mean - half, mean + half), abs=0.03)


def test_seeds_that_differ_make_an_interval_wider_than_their_means_alone() -> None:
    noisy = [[-3.0, 3.0 + n * 0.01] for n in range(30)]
    means = [[sum(group) / 2] for group in noisy]
    wide, narrow = interval_of_mean(noisy, seed=0), interval_of_mean(means, seed=0)
    assert wide is not None
    assert narrow is not None
    assert wide[1] - wide[0] > 5 * (narrow[1] - narrow[0])


def test_problems_with_fewer_seeds_draw_from_their_own_only() -> None:
    # Nothing but 2 can be drawn, whatever the other's number of seeds.
    assert interval_of_mean([[2.0], [2.0, 2.0, 2.0, 2.0]], seed=0) == (2.0, 2.0)


def test_without_variance_the_interval_is_a_point() -> None:
    assert interval_of_geomean([[math.log(2.0)]] * 5, seed=0) == pytest.approx((2.0, 2.0))


def test_one_problem_has_no_interval_over_problems() -> None:
    assert interval_of_mean([[1.0, 2.0, 3.0]], seed=0) is None
    assert interval_of_mean([], seed=0) is None


@pytest.mark.parametrize(("successes", "num"), [(0, 5), (5, 5), (3, 10), (42, 42), (1, 250)])
def test_wilson_s_interval_is_scipy_s(successes: int, num: int) -> None:
    expected = binomtest(successes, num).proportion_ci(method="wilson")
    assert wilson(successes, num=num) == pytest.approx((expected.low, expected.high))


def test_wilson_refuses_what_is_no_share() -> None:
    for successes, num in ((1, 0), (-1, 5), (6, 5)):
        with pytest.raises(ValueError, match="expected 0 <= successes"):
            wilson(successes, num=num)


def test_fast_p_counts_what_is_above_p_and_not_what_equals_it() -> None:
    trials = [sample_trial(name, s) for name, s in zip("abcd", (0.5, 1.0, 2.0, None), strict=True)]
    found = {each.p: each.share.share for each in fast_p(trials, over_seeds="mean")}
    assert found == {0.0: 0.75, 1.0: 0.25, 1.5: 0.25, 2.0: 0.0, 5.0: 0.0, 10.0: 0.0}


def test_a_problem_counts_by_the_share_of_its_seeds_or_by_its_best() -> None:
    trials = [sample_trial("a", 2.0, seed=0), sample_trial("a", None, seed=1)]
    trials.append(sample_trial("b", 2.0))
    mean = share_of(trials, holds=lambda t: t.speedup is not None, over_seeds="mean")
    best = share_of(trials, holds=lambda t: t.speedup is not None, over_seeds="best")
    assert mean is not None
    assert best is not None
    assert (mean.share, mean.num) == (0.75, 2)
    assert (mean.low, mean.high) == wilson(1.5, num=2)
    assert best.share == 1.0


def test_nothing_has_no_share() -> None:
    assert share_of([], holds=lambda t: True, over_seeds="mean") is None
    assert fast_p([], over_seeds="mean") == []
