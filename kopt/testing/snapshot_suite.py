"""The part of Search's conformance suite about what outlives a process: snapshots and journals.

SearchSuite holds it; there is no need to subclass it alone.
"""

# ruff: noqa: D102 - the names of the tests are the sentences that they prove

from __future__ import annotations

import json

import pytest

from kopt.search import Search
from kopt.testing.search_model import drive, tell_slot
from kopt.testing.search_steps import random_steps, tell_untold


class SnapshotSuite:
    """A restored or rebuilt search is the one that was left."""

    stops_early = False
    """Set it for a policy that may end before its budget though its nodes are open."""

    def make_search(self, *, iterations: int, candidates: int, seed: int) -> Search:
        """Return a new search of the policy, under RewardRule()."""
        raise NotImplementedError

    def test_a_restored_search_has_the_same_future(self) -> None:
        original = self.make_search(iterations=20, candidates=2, seed=23)
        asked = drive(original, in_flight=3, max_told=17)
        original.cancel(asked[0].ordinal, exhausted=True)
        restored = self.make_search(iterations=20, candidates=2, seed=23)
        restored.restore(json.loads(json.dumps(original.snapshot())))
        assert restored.nodes() == original.nodes()
        assert restored.pending() == original.pending()
        for search in (original, restored):
            for expansion in asked:
                tell_untold(search, expansion)
        assert drive(restored, in_flight=2) == drive(original, in_flight=2)
        assert restored.nodes() == original.nodes()
        assert restored.best() == original.best()

    def test_a_finished_search_is_extended_by_a_larger_budget(self) -> None:
        short = self.make_search(iterations=3, candidates=2, seed=24)
        drive(short)
        longer = self.make_search(iterations=6, candidates=2, seed=24)
        longer.restore(short.snapshot())
        assert longer.finished() is None
        drive(longer)
        self.assert_spent(longer, budget=12)

    def test_only_a_new_search_of_the_same_seed_restores_a_snapshot(self) -> None:
        original = self.make_search(iterations=5, candidates=2, seed=25)
        original.ask()
        with pytest.raises(ValueError, match="seed"):
            self.make_search(iterations=5, candidates=2, seed=26).restore(original.snapshot())
        with pytest.raises(ValueError, match="new"):
            original.restore(original.snapshot())

    def test_a_journal_of_steps_rebuilds_the_search(self) -> None:
        original = self.make_search(iterations=20, candidates=2, seed=27)
        journal = list(random_steps(original, seed=27, num_steps=200, closes_nodes=True))
        rebuilt = self.make_search(iterations=20, candidates=2, seed=27)
        for kind, expansion, index in journal:
            if kind == "ask":
                assert rebuilt.ask() == [expansion]
            elif kind == "tell":
                tell_slot(rebuilt, expansion, index=index)
            else:
                rebuilt.cancel(expansion.ordinal, exhausted=kind == "exhaust")
        assert rebuilt.nodes() == original.nodes()
        assert rebuilt.snapshot() == original.snapshot()

    def assert_spent(self, search: Search, *, budget: int) -> None:
        """Assert that the search is over, and why."""
        assert search.pending() == 0
        assert search.ask(4) == []
        if search.told() == budget:
            assert search.finished() == "budget"
        else:
            assert self.stops_early
            assert search.told() < budget
            assert search.finished() not in (None, "budget")
