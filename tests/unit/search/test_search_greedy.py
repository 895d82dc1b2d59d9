"""Greedy: the best node, the repair that is due, the fresh restart (KernelPro App. E)."""

import pytest

from kopt.reward import RewardRule
from kopt.search import ROOT, create_search
from kopt.search.config import GreedyConfig
from kopt.testing.fakes import correct
from kopt.verdict import CompileFailed, Crashed, Incorrect, NumericError

NOT_BUILT = CompileFailed(stage="build", log="error")


def wrong(rel_norm):
    error = NumericError(max_abs=1.0, rel_norm=rel_norm, rho=None)
    return Incorrect(check="values:own", detail="expected 1, found 2", error=error)


def new_greedy(**options):
    return create_search(GreedyConfig(**options), rule=RewardRule(), seed=1)


def tell(search, expansion, *verdicts):
    for index, verdict in enumerate(verdicts):
        candidate = f"{expansion.ordinal} {index}"
        search.tell(expansion.ordinal, index, candidate=candidate, verdict=verdict)


def step(search, *verdicts):
    """Ask one expansion, tell its slots, and return the node that was expanded."""
    (expansion,) = search.ask()
    tell(search, expansion, *verdicts)
    return expansion.parent_node


def parents(expansions):
    return [expansion.parent_node for expansion in expansions]


def test_without_a_correct_node_the_failure_closest_to_correctness_is_repaired():
    search = new_greedy()
    assert step(search, NOT_BUILT, wrong(0.5)) == ROOT
    assert step(search, wrong(0.6), wrong(0.1)) == 2
    assert parents(search.ask()) == [4]


def test_what_was_right_and_died_while_timed_is_closer_than_any_wrong_output():
    search = new_greedy()
    step(search, wrong(0.001), Crashed(stage="timing", log="signal 11"))
    assert parents(search.ask()) == [2]


def test_every_third_failure_in_a_row_is_followed_by_a_fresh_restart():
    search = new_greedy(candidates=1)
    seen = [step(search, NOT_BUILT) for _ in range(8)]
    # nodes 1, 2, 3, … in turn: of equals, the one with fewer repairs, then the older
    assert seen == [ROOT, 1, 2, ROOT, 3, 4, ROOT, 5]


def test_the_best_node_is_expanded_until_a_better_one_is_told():
    search = new_greedy()
    step(search, correct(2.0), correct(3.0))
    assert step(search, correct(2.5), correct(1.0)) == 2
    assert step(search, correct(4.0), NOT_BUILT) == 2
    assert step(search, NOT_BUILT, NOT_BUILT) == 5
    assert parents(search.ask()) == [5]


def test_failures_in_a_row_call_for_a_repair_and_then_for_a_restart_and_then_for_the_best_again():
    search = new_greedy(candidates=1)
    step(search, correct(2.0))
    assert step(search, NOT_BUILT) == 1
    assert step(search, wrong(0.5)) == 1
    assert step(search, NOT_BUILT) == 3  # two failed: the repair of the wrong output
    assert step(search, NOT_BUILT) == ROOT  # three failed
    assert step(search, NOT_BUILT) == 1
    assert step(search, NOT_BUILT) == 3
    assert step(search, NOT_BUILT) == ROOT


def test_one_correct_candidate_ends_the_row_of_failures():
    search = new_greedy()
    step(search, correct(2.0), NOT_BUILT)
    step(search, NOT_BUILT, NOT_BUILT)
    step(search, NOT_BUILT, correct(0.5))
    assert [step(search, NOT_BUILT, NOT_BUILT) for _ in range(3)] == [1, 1, 3]


def test_a_better_seed_of_a_restart_takes_over():
    search = new_greedy(candidates=1, restart_after=1)
    step(search, correct(2.0))
    step(search, NOT_BUILT)
    assert step(search, correct(3.0)) == ROOT
    assert parents(search.ask()) == [3]


def test_the_speed_of_the_parent_decides_between_equal_errors():
    search = new_greedy(repair_after=1)
    (seeds,) = search.ask()
    tell(search, seeds, wrong(0.5), correct(2.0))
    assert step(search, wrong(0.5), wrong(0.9)) == 2
    assert parents(search.ask()) == [3]  # made from a node of 2x; node 1 from nothing


def test_a_restart_that_is_due_is_asked_once_while_it_is_under_way():
    search = new_greedy(candidates=1)
    step(search, correct(2.0))
    for _ in range(3):
        step(search, NOT_BUILT)
    assert parents(search.ask(4)) == [ROOT, 1, 1, 1]


def test_a_repair_that_is_due_is_asked_once_while_it_is_under_way():
    search = new_greedy(candidates=1)
    step(search, correct(2.0))
    for _ in range(2):
        step(search, NOT_BUILT)
    assert parents(search.ask(3)) == [2, 1, 1]


def test_without_a_correct_node_parallel_asks_repair_one_node_each_and_then_plant_seeds():
    search = new_greedy()
    step(search, wrong(0.2), wrong(0.1))
    assert parents(search.ask(4)) == [2, 1, ROOT, ROOT]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (3, 2, 1)])
def test_a_row_of_failures_is_counted_in_the_order_asked(order):
    # Expansions 1 and 3 fail and 2 brings a correct candidate: one failure in a row, not two.
    search = new_greedy(candidates=1, repair_after=2)
    step(search, correct(2.0))
    asked = {expansion.ordinal: expansion for expansion in search.ask(3)}
    for ordinal in order:
        tell(search, asked[ordinal], correct(1.5) if ordinal == 2 else NOT_BUILT)
    assert parents(search.ask()) == [1]


def test_a_closed_best_node_leaves_its_place_to_the_next_best_and_at_last_to_repairs_and_seeds():
    search = new_greedy()
    step(search, correct(3.0), correct(2.0))
    for expected in (1, 2, ROOT):
        (expansion,) = search.ask()
        assert expansion.parent_node == expected
        search.cancel(expansion.ordinal, exhausted=True)
    assert search.finished() == "exhausted"


def test_a_search_whose_open_nodes_are_all_under_repair_waits():
    search = new_greedy()
    (seeds,) = search.ask()
    search.tell(seeds.ordinal, 0, candidate="a", verdict=NOT_BUILT)
    search.cancel(seeds.ordinal, exhausted=True)
    (repair,) = search.ask()
    assert repair.parent_node == 1
    assert search.ask() == []
    assert search.finished() is None
    search.tell(repair.ordinal, 0, candidate="b", verdict=NOT_BUILT)
    assert parents(search.ask()) == [3]
