from kopt.reward import RewardRule
from kopt.search import create_search
from kopt.search.config import MctsConfig
from kopt.search.render import render_tree
from kopt.testing.fakes import correct
from kopt.verdict import Incorrect


def small_tree():
    search = create_search(MctsConfig(), rule=RewardRule(), seed=0)
    search.ask()
    search.tell(0, 0, candidate="a", verdict=correct(1.0))
    search.tell(0, 1, candidate="b", verdict=Incorrect(check="values:own", detail="wrong"))
    (below,) = search.ask()
    assert below.parent_node == 1
    search.tell(below.ordinal, 1, candidate="c", verdict=correct(1.0))
    search.cancel(0, exhausted=True)
    return search


def test_a_tree_is_a_line_a_node_with_children_under_their_parent():
    assert render_tree(small_tree().nodes()).splitlines() == [
        "ROOT mean=-0.667 N=3 +1 closed",
        "  1 initial correct r=+0.000 mean=+0.000 N=2 +1",
        "    4 optimize correct r=+0.000 mean=+0.000 N=1",
        "  2 initial failed r=-2.000 mean=-2.000 N=1",
    ]


def test_what_is_too_deep_is_left_out_and_marked():
    assert render_tree(small_tree().nodes(), max_depth=1).splitlines()[1:] == [
        "  1 initial correct r=+0.000 mean=+0.000 N=2 +1 …",
        "  2 initial failed r=-2.000 mean=-2.000 N=1",
    ]


def test_no_nodes_are_no_text():
    assert render_tree([]) == ""
