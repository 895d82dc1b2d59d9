"""The tests of significance: signed ranks, Holm's correction, exact counts."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact, wilcoxon

from kopt.analysis.exact_counts import outcome_test, share_test
from kopt.analysis.holm import holm
from kopt.analysis.signed_rank import signed_rank


def test_signed_ranks_by_hand() -> None:
    # |d| = 1, 2, 3 with signs + - +: W+ = 1 + 3 = 4; of the 8 assignments of signs, W+ >= 4 in
    # 4 (1+3), 5 (2+3), 6 (1+2+3): three.
    found = signed_rank([1.0, -2.0, 3.0])
    assert (found.num, found.wins, found.losses, found.ties) == (3, 2, 1, 0)
    assert found.statistic == 4.0
    assert found.p == pytest.approx(3 / 8)
    assert found.least_p == 1 / 8
    assert found.effect == pytest.approx((4 - 2) / 6)


@pytest.mark.parametrize("num", [5, 12, 40])
def test_without_ties_p_is_scipy_s_exact_one(num: int) -> None:
    values = np.random.default_rng(num).normal(0.3, 1.0, size=num)
    expected = wilcoxon(values, alternative="greater", method="exact")
    found = signed_rank(values.tolist())
    assert found.statistic == expected.statistic
    assert found.p == pytest.approx(float(expected.pvalue), rel=1e-9)


def test_for_very_many_pairs_p_is_scipy_s_approximation() -> None:
    values = np.random.default_rng(0).normal(0.05, 1.0, size=900)
    expected = wilcoxon(values, alternative="greater", method="approx", correction=False)
    assert signed_rank(values.tolist()).p == pytest.approx(float(expected.pvalue), rel=1e-6)


@given(st.lists(st.integers(-3, 3), max_size=9))
def test_p_is_that_of_all_assignments_of_signs_ties_and_zeros_included(
    differences: list[int],
) -> None:
    found = signed_rank([float(each) for each in differences])
    kept = [each for each in differences if each]
    assert found.ties == len(differences) - len(kept)
    if not kept:
        assert found.p is None
        return
    sizes = sorted(abs(each) for each in kept)
    rank = {size: sizes.index(size) + (sizes.count(size) + 1) / 2 for size in sizes}
    seen = sum(rank[each] for each in kept if each > 0)
    sums = [
        sum(rank[abs(each)] for each, sign in zip(kept, signs, strict=True) if sign)
        for signs in itertools.product((False, True), repeat=len(kept))
    ]
    assert found.p == pytest.approx(sum(each >= seen for each in sums) / len(sums))


def test_three_equal_differences_are_one_in_eight_and_not_one_in_twenty_four() -> None:
    assert signed_rank([0.5, 0.5, 0.5]).p == pytest.approx(0.125)


def test_where_all_pairs_tie_there_is_no_p() -> None:
    found = signed_rank([0.0, 1e-15, 0.0])
    assert (found.num, found.ties, found.p, found.z, found.effect) == (0, 3, None, None, None)


def test_a_difference_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        signed_rank([1.0, float("nan")])


def test_holm_by_hand() -> None:
    # Sorted: 0.01 x 3 = 0.03; 0.02 x 2 = 0.04; 0.5 x 1.
    assert holm([0.02, 0.01, 0.5]) == pytest.approx([0.04, 0.03, 0.5])


def test_holm_never_decreases_nor_exceeds_one_and_leaves_no_test_out() -> None:
    # 0.01 x 4, then 0.02 x 3 = 0.06, 0.025 x 2 = 0.05 -> 0.06, 0.9.
    assert holm([0.9, 0.025, None, 0.01, 0.02]) == pytest.approx([0.9, 0.06, None, 0.04, 0.06])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_the_share_test_is_fisher_s() -> None:
    expected = float(fisher_exact([[19, 31], [5, 45]])[1])
    assert share_test((19, 31), (5, 45)) == pytest.approx(expected)


def test_where_all_or_none_are_there_is_no_share_test() -> None:
    assert share_test((0, 5), (0, 7)) is None
    assert share_test((5, 0), (7, 0)) is None
    assert share_test((0, 0), (3, 4)) is None


def test_outcomes_by_hand() -> None:
    # Margins 2, 1, 1 and rows of 2: first rows 200 | 110 101 011 with chances 1, 2, 2, 1 of 6.
    # Seen 2,0,0 (1/6): no likelier are itself and 0,1,1: 2/6.
    found = outcome_test({"a": 2}, {"b": 1, "c": 1})
    assert found is not None
    assert found.method == "exact"
    assert found.p == pytest.approx(2 / 6)


def test_two_outcomes_give_the_test_of_two_shares() -> None:
    found = outcome_test({"a": 8, "b": 2}, {"a": 3, "b": 7})
    assert found is not None
    assert found.p == pytest.approx(share_test((8, 2), (3, 7)))


def test_too_many_tables_are_drawn_and_said_to_be_with_the_same_p_each_time() -> None:
    first = dict.fromkeys("abcde", 100)
    second = {name: 100 + 30 * place for place, name in enumerate("abcde")}
    found = outcome_test(first, second)
    assert found is not None
    assert found.method == "drawn"
    assert found == outcome_test(first, second)
    assert 0.0 < found.p < 0.05


def test_one_outcome_or_an_empty_row_is_no_test() -> None:
    assert outcome_test({"a": 3}, {"a": 4}) is None
    assert outcome_test({}, {"a": 4, "b": 1}) is None
