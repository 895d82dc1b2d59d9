import pytest

from kopt.reward import RewardRule
from kopt.search import ROOT, create_search
from kopt.search.config import MctsConfig
from kopt.search.terminal import is_terminal
from kopt.testing.fakes import correct
from kopt.testing.search_model import drive
from kopt.verdict import Incorrect

WRONG = Incorrect(check="values:own", detail="expected 1, found 2")


@pytest.fixture
def node(make_node):
    """Makes a node with so many children."""

    def make(*, status="failed", children=3, **fields):
        made = make_node(1, status=status, **fields)
        for number in range(children):
            make_node(2 + number, parent=made, status="failed")
        return made

    return make


def new_mcts(**options):
    return create_search(MctsConfig(**options), rule=RewardRule(), seed=1)


def test_a_failed_node_with_three_failed_repairs_is_terminal(node):
    assert is_terminal(node(), terminal_repairs=3)
    assert not is_terminal(node(children=2), terminal_repairs=3)


def test_a_correct_candidate_anywhere_below_keeps_a_node_alive(node):
    assert not is_terminal(node(num_correct_below=1), terminal_repairs=3)


def test_a_pending_answer_below_keeps_a_node_alive(node):
    assert not is_terminal(node(in_flight=1), terminal_repairs=3)


def test_a_correct_node_is_never_terminal(node):
    assert not is_terminal(node(status="correct"), terminal_repairs=3)


def test_a_search_whose_branches_all_die_and_that_gets_no_seeds_ends_all_terminal():
    search = new_mcts(iterations=1000)
    (seeds,) = search.ask()
    for index in range(2):
        search.tell(seeds.ordinal, index, candidate="c", verdict=WRONG)
    search.cancel(seeds.ordinal, exhausted=True)
    drive(search, outcome=lambda _expansion, _index: WRONG)
    assert search.finished() == "all_terminal"
    assert [search.node(node).terminal for node in (ROOT, 1, 2)] == [False, True, True]
    assert search.told() < 2000


def test_the_last_pending_answer_decides_between_a_dead_end_and_a_way_on():
    for last, is_dead in ((WRONG, True), (correct(1.1), False)):
        search = new_mcts(candidates=3)
        (seeds,) = search.ask()
        search.tell(seeds.ordinal, 0, candidate="seed", verdict=WRONG)
        search.cancel(seeds.ordinal, exhausted=True)  # only node 1 is left to ask at
        (repairs,) = search.ask()
        assert (repairs.parent_node, repairs.mode) == (1, "debug")
        for index in (2, 0):
            search.tell(repairs.ordinal, index, candidate=f"c{index}", verdict=WRONG)
        assert not search.node(1).terminal
        search.tell(repairs.ordinal, 1, candidate="last", verdict=last)
        assert search.node(1).terminal is is_dead


def test_cancelling_the_last_pending_slots_makes_a_dead_end_too():
    search = new_mcts(candidates=4)
    (seeds,) = search.ask()
    search.tell(seeds.ordinal, 0, candidate="seed", verdict=WRONG)
    search.cancel(seeds.ordinal, exhausted=True)
    (repairs,) = search.ask()
    for index in range(3):
        search.tell(repairs.ordinal, index, candidate=f"c{index}", verdict=WRONG)
    assert not search.node(1).terminal
    search.cancel(repairs.ordinal)
    assert search.node(1).terminal
    assert search.finished() == "all_terminal"


def test_the_mark_propagates_to_every_failed_ancestor_whose_last_hope_died():
    # ROOT - 1 failed - 2, 3, 4 failed; a repair of 2 is pending, then fails: 1 dies with it.
    search = new_mcts(candidates=3, terminal_repairs=3, c_pw_failed=0.1)
    (seeds,) = search.ask()
    search.tell(seeds.ordinal, 0, candidate="seed", verdict=WRONG)
    search.cancel(seeds.ordinal, exhausted=True)
    (repairs,) = search.ask()
    search.tell(repairs.ordinal, 0, candidate="c0", verdict=WRONG)
    (repairs_of_first,) = search.ask()
    assert repairs_of_first.parent_node == 4
    for index in (1, 2):
        search.tell(repairs.ordinal, index, candidate=f"c{index}", verdict=WRONG)
    assert not search.node(1).terminal
    for index in range(3):
        search.tell(repairs_of_first.ordinal, index, candidate=f"d{index}", verdict=WRONG)
    assert [search.node(node).terminal for node in (1, 4, 5)] == [True, True, False]
    assert search.finished() == "all_terminal"
