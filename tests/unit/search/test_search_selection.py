import math

import pytest

from kopt.search.node import virtual_root
from kopt.search.selection import (
    best_serving_child,
    exploration_weight,
    uct_score,
    virtual_child_score,
)


@pytest.fixture
def node_with_children(make_node):
    """Makes a ROOT whose children have (visits, value_sum, in_flight, serves)."""

    def make(*stats):
        root = virtual_root()
        for number, (visits, value_sum, in_flight, serves) in enumerate(stats, start=1):
            make_node(
                number,
                parent=root,
                visits=visits,
                value_sum=value_sum,
                in_flight=in_flight,
                serves=serves,
            )
        return root

    return make


def test_uct_is_the_mean_plus_the_weighted_root_of_log_parent_over_child_visits():
    # c = 2, ln N' = ln e^4 would be 4; with N' = 55: sqrt(ln 55 / 5) = sqrt(0.801467) = 0.895247.
    weight = exploration_weight(55, c_uct=2.0)
    assert uct_score(-1.0, visits=5, weight=weight) == pytest.approx(-1.0 + 2 * 0.895247, abs=1e-5)


def test_the_virtual_child_has_the_parents_mean_and_a_fair_share_of_its_visits():
    # N' = 12, k = 2: the share is 12 / 3 = 4 visits, so the bonus is sqrt(ln 12 / 4).
    score = virtual_child_score(0.5, num_children=2, parent_visits=12, weight=math.sqrt(2.4849066))
    assert score == pytest.approx(0.5 + 0.788180, abs=1e-5)


def test_a_virtual_child_and_a_child_of_the_same_share_and_mean_tie_exactly():
    for num_children in range(1, 40):
        for visits in range(1, 60):
            parent_visits = visits * (num_children + 1)
            weight = exploration_weight(parent_visits, c_uct=math.sqrt(2))
            virtual = virtual_child_score(
                -2.3, num_children=num_children, parent_visits=parent_visits, weight=weight
            )
            assert virtual == uct_score(-2.3, visits=visits, weight=weight)


def test_the_first_visit_explores_nothing():
    assert exploration_weight(1, c_uct=1.4) == 0.0


def test_the_child_with_the_highest_uct_wins(node_with_children):
    # weight 1: 2/4 + sqrt(1/4) = 1.0 against 0.3/1 + sqrt(1/1) = 1.3.
    child, score = best_serving_child(
        node_with_children((4, 2.0, 0, True), (1, 0.3, 0, True)), weight=1.0
    )
    assert (child.node_id, score) == (2, pytest.approx(1.3))


def test_pending_slots_lower_the_bonus_of_a_child_and_leave_its_mean(node_with_children):
    # 0.3/1 + sqrt(1/(1+8)) = 0.6333, below 1.0 of the other child.
    child, score = best_serving_child(
        node_with_children((4, 2.0, 0, True), (1, 0.3, 8, True)), weight=1.0
    )
    assert (child.node_id, score) == (1, pytest.approx(1.0))


def test_the_lowest_id_wins_a_tie(node_with_children):
    child, _ = best_serving_child(
        node_with_children((2, 1.0, 0, True), (2, 1.0, 0, True)), weight=1.0
    )
    assert child.node_id == 1


def test_a_child_that_does_not_serve_is_passed_over(node_with_children):
    child, _ = best_serving_child(
        node_with_children((1, 9.0, 0, False), (1, -3.0, 0, True)), weight=1.0
    )
    assert child.node_id == 2
    assert best_serving_child(node_with_children((1, 9.0, 0, False)), weight=1.0) is None


def test_rewards_below_zero_are_ranked_too(node_with_children):
    child, _ = best_serving_child(
        node_with_children((1, -3.0, 0, True), (1, -2.0, 0, True)), weight=0.0
    )
    assert child.node_id == 2
