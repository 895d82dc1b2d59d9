from itertools import permutations

import pytest

from kopt.search.backup import add_in_flight, back_up, summable
from kopt.search.node import virtual_root


@pytest.fixture
def chain(make_node):
    """Makes a list of a ROOT and so many nodes, each the only child of the one before."""

    def make(length):
        nodes = [virtual_root()]
        for number in range(1, length + 1):
            nodes.append(make_node(number, parent=nodes[-1]))
        return nodes

    return make


def test_a_reward_is_counted_at_the_node_and_every_ancestor(chain):
    root, first, second = chain(2)
    back_up(first, reward=0.5)
    back_up(second, reward=-2.0)
    assert [(node.visits, node.value_sum) for node in (root, first, second)] == [
        (2, -1.5),
        (2, -1.5),
        (1, -2.0),
    ]


def test_a_correct_node_is_counted_below_its_ancestors_and_not_below_itself(chain):
    root, first, second = chain(2)
    back_up(second, reward=0.5)
    assert [node.num_correct_below for node in (root, first, second)] == [1, 1, 0]


def test_in_flight_is_counted_up_to_root_and_pending_only_at_the_node(chain):
    root, first, second = chain(2)
    add_in_flight(first, num_slots=3)
    assert [node.in_flight for node in (root, first, second)] == [3, 3, 0]
    assert [node.pending_here for node in (root, first, second)] == [0, 3, 0]
    add_in_flight(first, num_slots=-3)
    assert [node.in_flight for node in (root, first, second)] == [0, 0, 0]


def test_the_sum_of_rewards_does_not_depend_on_their_order():
    rewards = (0.1, 0.2, 0.3, -1.9, 4.60517)
    assert len({sum(order) for order in permutations(rewards)}) > 1
    assert len({sum(map(summable, order)) for order in permutations(rewards)}) == 1


def test_rounding_a_reward_for_the_sum_changes_it_by_less_than_a_billionth():
    assert abs(summable(-1.9) + 1.9) < 1e-9
    assert summable(-2.0) == -2.0


def test_a_chain_of_thousands_is_walked_without_recursion(chain):
    nodes = chain(5000)
    back_up(nodes[-1], reward=1.0)
    assert nodes[0].value_sum == 1.0
