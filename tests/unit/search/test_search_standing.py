"""Who waits for pending answers, who goes on, and when a search is over."""

from kopt.reward import RewardRule
from kopt.search import ROOT, create_search
from kopt.search.config import MctsConfig
from kopt.testing.fakes import correct
from kopt.verdict import Incorrect

WRONG = Incorrect(check="values:own", detail="expected 1, found 2")


def new_mcts(**options):
    return create_search(MctsConfig(**options), rule=RewardRule(), seed=1)


def parents(expansions):
    return [expansion.parent_node for expansion in expansions]


def test_an_empty_tree_asks_as_many_seeds_as_the_gate_of_root_allows_and_then_waits():
    # N = 2: 0 pending, always; 2 pending: 2 < 2 sqrt(2); 4 pending: 4 < 2 sqrt(4) is false.
    search = new_mcts()
    assert parents(search.ask(8)) == [ROOT, ROOT]
    assert search.ask(8) == []
    assert search.finished() is None


def test_one_answer_lets_a_waiting_search_go_on_below_it():
    search = new_mcts()
    search.ask(8)
    search.tell(0, 1, candidate="a", verdict=correct(2.0))
    assert parents(search.ask()) == [2]


def test_a_branch_that_waits_does_not_keep_its_siblings_from_being_asked():
    # ROOT is closed and greed (c = 0) prefers node 1; its gate (C_pw = 3, alpha = 0) shuts at 3.
    search = new_mcts(c_uct=0.0, alpha=0.0, candidates=3)
    search.ask()
    search.tell(0, 0, candidate="a", verdict=correct(4.0))
    search.tell(0, 1, candidate="b", verdict=correct(2.0))
    search.cancel(0, exhausted=True)
    assert parents(search.ask(5)) == [1, 2]
    assert search.ask() == []
    search.tell(2, 0, candidate="c", verdict=correct(1.0))
    assert parents(search.ask()) == [7]  # below node 2; node 1 still waits


def test_a_shut_gate_opens_where_nothing_is_pending_and_no_child_is_live():
    # alpha = 0 and C_pw = 1: node 1 may have one child. That child is closed by its programmer, so
    # nothing but node 1 is left to ask at.
    search = new_mcts(candidates=1, alpha=0.0, c_pw_successful=1.0)
    search.ask()
    search.tell(0, 0, candidate="a", verdict=correct(2.0))
    search.cancel(0, exhausted=True)
    (below_1,) = search.ask()
    search.tell(below_1.ordinal, 0, candidate="b", verdict=correct(2.0))
    (below_2,) = search.ask()
    assert below_2.parent_node == 2
    search.cancel(below_2.ordinal, exhausted=True)
    assert parents(search.ask()) == [1]


def test_a_closed_branch_without_live_children_is_left_out():
    search = new_mcts()
    search.ask()
    search.tell(0, 0, candidate="a", verdict=correct(9.0))
    search.tell(0, 1, candidate="b", verdict=correct(1.0))
    search.cancel(0, exhausted=True)
    (first,) = search.ask()
    assert first.parent_node == 1
    search.cancel(first.ordinal, exhausted=True)
    assert parents(search.ask()) == [2]


def test_a_search_with_every_node_closed_is_exhausted():
    search = new_mcts()
    search.ask()
    for index in range(2):
        search.tell(0, index, candidate="a", verdict=correct(9.0))
    search.cancel(0, exhausted=True)
    while expansions := search.ask():
        assert search.finished() is None
        search.cancel(expansions[0].ordinal, exhausted=True)
    assert search.finished() == "exhausted"


def test_two_expansions_of_one_node_may_both_say_that_it_is_exhausted():
    search = new_mcts()
    search.ask(2)
    assert search.cancel(0, exhausted=True) == 2
    assert search.finished() is None
    assert search.cancel(1, exhausted=True) == 2
    assert search.finished() == "exhausted"


def test_a_closed_node_still_leads_to_its_children():
    search = new_mcts(c_uct=0.0)
    search.ask()
    search.tell(0, 0, candidate="a", verdict=correct(2.0))
    search.tell(0, 1, candidate="b", verdict=WRONG)
    (below_1,) = search.ask()
    assert below_1.parent_node == 1
    search.tell(below_1.ordinal, 0, candidate="c", verdict=correct(2.5))
    search.cancel(below_1.ordinal, exhausted=True)
    assert parents(search.ask()) == [3]
