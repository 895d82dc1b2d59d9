import pytest

from kopt.search.diverse import diverse_select
from kopt.search.node import virtual_root


@pytest.fixture
def node(make_node):
    """Makes a node of a chain, named by the id of its first node, with a reward."""
    root = virtual_root()
    heads = {}

    def make(node_id, *, chain, reward, candidate=None):
        made = make_node(node_id, parent=root)
        made.reward = reward
        made.candidate = candidate or made.candidate
        heads.setdefault(chain, made if chain == node_id else make_node(chain, parent=root))
        made.origin = heads[chain]
        return made

    return make


def ids(nodes):
    return [node.node_id for node in nodes]


def test_each_chain_keeps_its_best_and_the_places_left_go_to_the_best_of_the_rest(node):
    candidates = [
        node(11, chain=1, reward=3.0),
        node(12, chain=1, reward=2.0),
        node(13, chain=1, reward=1.0),
        node(21, chain=2, reward=-1.0),
        node(22, chain=2, reward=-1.5),
    ]
    assert ids(diverse_select(candidates, width=4)) == [11, 21, 12, 13]
    assert ids(diverse_select(reversed(candidates), width=4)) == [11, 21, 12, 13]
    assert ids(diverse_select(candidates, width=9)) == [11, 21, 12, 13, 22]


def test_of_more_chains_than_places_the_best_go_on(node):
    candidates = [node(number, chain=number, reward=number / 10) for number in range(1, 7)]
    assert ids(diverse_select(candidates, width=2)) == [6, 5]


def test_the_older_of_equal_rewards_goes_on(node):
    assert ids(
        diverse_select([node(12, chain=1, reward=1.0), node(11, chain=1, reward=1.0)], width=1)
    ) == [11]


def test_a_copy_takes_no_second_place(node):
    candidates = [
        node(11, chain=1, reward=1.0, candidate="same"),
        node(21, chain=2, reward=1.0, candidate="same"),
        node(12, chain=1, reward=0.5),
    ]
    assert ids(diverse_select(candidates, width=4)) == [11, 12]


def test_nothing_passed_is_an_empty_beam():
    assert diverse_select([], width=4) == []
