"""The conformance suite of Search: what every policy keeps, whatever it chooses.

Subclass it in a test file and fill in `make_search`; pytest collects the rest:

    class TestMine(SearchSuite):
        def make_search(self, *, iterations, candidates, seed):
            return create_search(MyConfig(iterations=…, …), rule=RewardRule(), seed=seed)
"""

# ruff: noqa: D102 - the names of the tests are the sentences that they prove

from __future__ import annotations

import math
from itertools import permutations

import pytest

from kopt.identity import derived_seed
from kopt.search import ROOT
from kopt.testing.fakes import correct
from kopt.testing.search_model import drive, tell_slot
from kopt.testing.search_steps import assert_counts_add_up, grow, random_steps, tell_rest
from kopt.testing.snapshot_suite import SnapshotSuite


class SearchSuite(SnapshotSuite):
    """Subclass this, fill in `make_search`, and name the subclass Test….

    A policy that may end before its budget though its nodes are open sets `stops_early`.
    """

    def test_a_sequential_search_tells_exactly_its_budget(self) -> None:
        for iterations, candidates in ((1, 1), (7, 3), (30, 2)):
            search = self.make_search(iterations=iterations, candidates=candidates, seed=0)
            assert search.finished() is None
            drive(search)
            self.assert_spent(search, budget=iterations * candidates)

    @pytest.mark.parametrize("in_flight", [1, 5])
    @pytest.mark.parametrize(("iterations", "candidates"), [(60, 1), (30, 2), (15, 4), (1, 60)])
    def test_a_budget_of_60_candidates_is_told_exactly(
        self, iterations: int, candidates: int, in_flight: int
    ) -> None:
        search = self.make_search(iterations=iterations, candidates=candidates, seed=29)
        drive(search, in_flight=in_flight)
        self.assert_spent(search, budget=60)
        assert self.stops_early or search.told() == 60

    def test_told_and_pending_never_exceed_the_budget_in_a_parallel_search(self) -> None:
        search = self.make_search(iterations=20, candidates=3, seed=1)
        for kind, _, _ in random_steps(search, seed=1, num_steps=1000):
            assert search.told() + search.pending() <= 60, kind
        self.assert_spent(search, budget=60)

    def test_cancelled_slots_go_back_to_the_budget(self) -> None:
        search = self.make_search(iterations=10, candidates=3, seed=2)
        for round_number in range(1000):
            expansions = search.ask(2)
            if not expansions:
                break
            for expansion in expansions:
                tell_slot(search, expansion, index=0)
                if expansion.num_candidates > 1 and round_number % 2:
                    assert search.cancel(expansion.ordinal) == expansion.num_candidates - 1
                else:
                    tell_rest(search, expansion)
        self.assert_spent(search, budget=30)

    def test_counts_do_not_depend_on_the_order_of_tells(self) -> None:
        outcomes = []
        for order in permutations(range(3)):
            search = self.make_search(iterations=30, candidates=2, seed=3)
            grow(search, num_told=12)
            asked = search.ask(3)
            for slot in order:
                for expansion in asked[slot : slot + 1]:
                    for index in reversed(range(expansion.num_candidates)):
                        tell_slot(search, expansion, index=index)
            outcomes.append((search.nodes(), search.best(), search.ask(3)))
        assert all(outcome == outcomes[0] for outcome in outcomes)

    def test_the_same_calls_give_the_same_search(self) -> None:
        first = self.make_search(iterations=20, candidates=2, seed=4)
        second = self.make_search(iterations=20, candidates=2, seed=4)
        assert drive(first, in_flight=3) == drive(second, in_flight=3)
        assert first.nodes() == second.nodes()

    def test_asking_for_k_is_asking_for_one_k_times(self) -> None:
        together = self.make_search(iterations=20, candidates=2, seed=5)
        apart = self.make_search(iterations=20, candidates=2, seed=5)
        for search in (together, apart):
            grow(search, num_told=10)
        singles = [expansion for _ in range(4) for expansion in apart.ask(1)]
        assert together.ask(4) == singles

    def test_an_ask_that_gives_nothing_changes_nothing(self) -> None:
        search = self.make_search(iterations=6, candidates=2, seed=6)
        grow(search, num_told=4)
        while search.ask():
            pass
        before = (search.nodes(), search.snapshot())
        assert search.ask(5) == []
        assert (search.nodes(), search.snapshot()) == before

    def test_slots_are_numbered_as_they_are_asked_and_name_the_nodes(self) -> None:
        search = self.make_search(iterations=20, candidates=2, seed=7)
        asked = drive(search, in_flight=3)
        first_slot = 0
        expected = {}
        for ordinal, expansion in enumerate(asked):
            assert expansion.ordinal == ordinal
            for index in range(expansion.num_candidates):
                expected[1 + first_slot + index] = (ordinal, index, expansion.parent_node)
            first_slot += expansion.num_candidates
        found = {view.node: (view.ordinal, view.index, view.parent) for view in search.nodes()[1:]}
        assert found == expected

    def test_an_expansion_says_what_its_node_is(self) -> None:
        search = self.make_search(iterations=30, candidates=2, seed=8)
        slots_before: dict[int, int] = {}
        while expansions := search.ask():
            (expansion,) = expansions
            parent = search.node(expansion.parent_node)
            modes = {"root": "initial", "failed": "debug", "correct": "optimize"}
            assert expansion.mode == modes[parent.status]
            assert expansion.parent == parent.candidate
            assert expansion.first_child == slots_before.get(parent.node, 0)
            assert expansion.seed == derived_seed(8, parent.node, expansion.first_child)
            slots_before[parent.node] = expansion.first_child + expansion.num_candidates
            tell_rest(search, expansion, start=0)

    def test_counts_add_up_at_every_moment(self) -> None:
        search = self.make_search(iterations=20, candidates=2, seed=9)
        for _ in random_steps(search, seed=9, num_steps=300, closes_nodes=True):
            assert_counts_add_up(search)

    def test_cancel_takes_back_every_in_flight_count(self) -> None:
        search = self.make_search(iterations=20, candidates=2, seed=10)
        grow(search, num_told=14)
        before = search.nodes()
        asked = search.ask(3)
        assert search.pending() == sum(expansion.num_candidates for expansion in asked)
        assert asked or self.stops_early
        for expansion in asked:
            assert search.cancel(expansion.ordinal) == expansion.num_candidates
        assert search.pending() == 0
        assert search.nodes() == before

    def test_an_idea_that_was_cancelled_is_not_asked_again(self) -> None:
        search = self.make_search(iterations=5, candidates=2, seed=11)
        (first,) = search.ask()
        search.cancel(first.ordinal)
        (second,) = search.ask()
        assert (second.parent_node, second.first_child) == (ROOT, 2)
        assert second.seed != first.seed

    def test_a_slot_is_told_exactly_once(self) -> None:
        search = self.make_search(iterations=5, candidates=2, seed=12)
        (expansion,) = search.ask()
        tell_slot(search, expansion, index=0)
        before = search.nodes()
        with pytest.raises(ValueError, match="told"):
            tell_slot(search, expansion, index=0)
        assert search.nodes() == before

    def test_a_cancelled_slot_cannot_be_told(self) -> None:
        search = self.make_search(iterations=5, candidates=2, seed=13)
        (expansion,) = search.ask()
        search.cancel(expansion.ordinal)
        with pytest.raises(ValueError, match="cancelled"):
            tell_slot(search, expansion, index=1)

    @pytest.mark.parametrize(("ordinal", "index"), [(1, 0), (-1, 0), (0, 2), (0, -1)])
    def test_an_unknown_slot_cannot_be_told(self, ordinal: int, index: int) -> None:
        search = self.make_search(iterations=5, candidates=2, seed=14)
        search.ask()
        with pytest.raises(ValueError, match=r"\d"):
            search.tell(ordinal, index, candidate="c", verdict=correct(2.0))
        assert search.told() == 0

    def test_a_reward_that_is_not_finite_is_refused(self) -> None:
        search = self.make_search(iterations=5, candidates=2, seed=15)
        search.ask()
        with pytest.raises(ValueError, match="finite"):
            search.tell(0, 0, candidate="c", verdict=correct(math.nan))
        assert (search.told(), search.pending()) == (0, 2)

    def test_only_pending_slots_can_be_cancelled(self) -> None:
        search = self.make_search(iterations=5, candidates=2, seed=16)
        with pytest.raises(ValueError, match="never asked"):
            search.cancel(0)
        (expansion,) = search.ask()
        tell_rest(search, expansion, start=0)
        with pytest.raises(ValueError, match="pending"):
            search.cancel(expansion.ordinal)

    def test_an_ask_for_less_than_one_is_refused(self) -> None:
        with pytest.raises(ValueError, match="k must be >= 1"):
            self.make_search(iterations=5, candidates=2, seed=17).ask(0)

    def test_a_closed_node_is_never_asked_again(self) -> None:
        search = self.make_search(iterations=20, candidates=2, seed=18)
        closed: set[int] = set()
        while expansions := search.ask():
            (expansion,) = expansions
            assert expansion.parent_node not in closed
            tell_rest(search, expansion, start=0)
            if expansion.ordinal % 3 == 2:
                assert search.cancel(expansion.ordinal, exhausted=True) == 0
                closed.add(expansion.parent_node)
                assert search.node(expansion.parent_node).closed
        assert search.finished() is not None

    def test_a_search_whose_programmer_has_nothing_is_exhausted(self) -> None:
        search = self.make_search(iterations=5, candidates=2, seed=19)
        (expansion,) = search.ask()
        assert search.cancel(expansion.ordinal, exhausted=True) == 2
        assert search.finished() == "exhausted"
        assert search.ask(3) == []
        assert (search.told(), search.pending(), search.best()) == (0, 0, None)

    def test_a_search_with_pending_slots_is_not_finished(self) -> None:
        search = self.make_search(iterations=1, candidates=2, seed=20)
        (expansion,) = search.ask()
        assert search.finished() is None
        tell_slot(search, expansion, index=1)
        assert search.finished() is None
        tell_slot(search, expansion, index=0)
        assert search.finished() == "budget"

    def test_best_is_the_correct_node_of_highest_reward(self) -> None:
        search = self.make_search(iterations=30, candidates=2, seed=21)
        assert search.best() is None
        while expansions := search.ask():
            tell_rest(search, expansions[0], start=0)
            ranks = [
                (view.reward, -view.node)
                for view in search.nodes()
                if view.status == "correct" and view.reward is not None
            ]
            assert search.best() == (-max(ranks)[1] if ranks else None)

    def test_equal_rewards_leave_the_lowest_node_best(self) -> None:
        search = self.make_search(iterations=5, candidates=2, seed=22)
        search.ask()
        for index in (1, 0):
            search.tell(0, index, candidate=f"c{index}", verdict=correct(2.0))
        assert search.best() == 1

    def test_a_node_that_is_not_there_cannot_be_seen(self) -> None:
        search = self.make_search(iterations=5, candidates=2, seed=28)
        search.ask()
        with pytest.raises(ValueError, match="no node 1"):
            search.node(1)
        assert search.node(ROOT).in_flight == 2
