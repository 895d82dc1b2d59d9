import pytest

from kopt.search.frontier import Frontier
from kopt.search.node import virtual_root
from kopt.search.progress import Progress


@pytest.fixture
def root():
    return virtual_root()


@pytest.fixture
def known(make_node, root):
    """Makes a frontier that has heard of nodes with the given fields, numbered from 1."""

    def make(*nodes_fields):
        frontier = Frontier()
        nodes = []
        for number, fields in enumerate(nodes_fields, start=1):
            reward = fields.pop("reward", 0.0)
            node = make_node(number, parent=root, **fields)
            node.reward = reward
            nodes.append(node)
            frontier.changed(node)
        return frontier, nodes

    return make


def failed(stage, error_size=None, **fields):
    progress = Progress(stage=stage, error_size=error_size)
    return {"status": "failed", "progress": progress, **fields}


def repairs_in_order(frontier):
    order = []
    while (node := frontier.repair()) is not None:
        order.append(node.node_id)
        node.closed = True
        frontier.changed(node)
    return order


def test_the_best_node_is_the_open_correct_one_of_highest_reward(known):
    frontier, nodes = known({"reward": 0.5}, {"reward": 0.9}, {"reward": 0.9}, failed("build"))
    assert frontier.best() is nodes[1]
    nodes[1].closed = True
    frontier.changed(nodes[1])
    assert frontier.best() is nodes[2]


def test_repairs_go_by_stage_then_error_then_speed_then_age(known):
    frontier, _ = known(
        failed("cheated"),
        failed("build"),
        failed("compared"),
        failed("compared", 0.5),
        failed("compared", 0.1),
        failed("compared", 0.1, reward_above=1.0),
        failed("timing"),
        failed("compared", 0.1, reward_above=1.0),
        failed(None),
    )
    assert repairs_in_order(frontier) == [7, 6, 8, 5, 4, 3, 2, 1, 9]


def test_a_node_under_repair_is_left_out_until_the_answers_are_in(known):
    frontier, (first, second) = known(failed("compared", 0.1), failed("build"))
    first.pending_here = 2
    frontier.changed(first)
    assert (frontier.repair(), frontier.is_repairing()) == (second, True)
    first.pending_here = 0
    frontier.changed(first)
    assert (frontier.repair(), frontier.is_repairing()) == (first, False)


def test_nodes_equally_far_take_turns(known, make_node):
    frontier, (first, second) = known(failed("build"), failed("build"))
    frontier.changed(make_node(3, parent=first, status="correct"))
    assert frontier.repair() is second
    frontier.changed(make_node(4, parent=second, status="correct"))
    assert frontier.repair() is first


def test_the_order_does_not_depend_on_the_order_in_which_nodes_came(make_node, root):
    fields = [failed("build"), failed("compared", 0.2), failed("compared", 0.1), failed("static")]
    nodes = [make_node(number, parent=root, **each) for number, each in enumerate(fields, start=1)]
    orders = []
    for arrival in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)):
        frontier = Frontier()
        for place in arrival:
            nodes[place].closed = False
            frontier.changed(nodes[place])
        orders.append(repairs_in_order(frontier))
    assert orders == [[3, 2, 1, 4]] * 3


def test_an_empty_frontier_has_nothing():
    frontier = Frontier()
    frontier.changed(virtual_root())
    assert (frontier.best(), frontier.repair(), frontier.is_repairing()) == (None, None, False)
