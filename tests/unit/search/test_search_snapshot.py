import json

import pytest

from kopt.reward import RewardRule
from kopt.search import create_search, restore_search
from kopt.search.config import BestOfNConfig, MctsConfig
from kopt.search.progress import UNKNOWN
from kopt.testing.fakes import correct


def mcts_after_one_tell():
    search = create_search(MctsConfig(candidates=3), rule=RewardRule(), seed=5)
    search.ask()
    search.tell(0, 1, candidate="a", verdict=correct(1.0), strategy="tile")
    return search


def test_a_snapshot_holds_what_was_asked_and_what_became_of_each_slot():
    search = mcts_after_one_tell()
    search.ask()
    search.cancel(1, exhausted=True)
    told = {
        "candidate": "a",
        "status": "correct",
        "reward": 0.0,
        "strategy": "tile",
        "stage": "correct",
        "error_size": None,
    }
    assert search.snapshot() == {
        "schema": 2,
        "kind": "mcts",
        "seed": 5,
        "expansions": [
            {"parent_node": 0, "slots": ["pending", told, "pending"]},
            {"parent_node": 0, "slots": ["cancelled", "cancelled", "cancelled"]},
        ],
        "closed": [0],
    }


def test_a_snapshot_survives_json():
    snapshot = mcts_after_one_tell().snapshot()
    restored = restore_search(
        json.loads(json.dumps(snapshot)), config=MctsConfig(), rule=RewardRule(), seed=5
    )
    assert restored.snapshot() == snapshot


def test_a_snapshot_of_schema_1_is_read_as_one_that_knows_less():
    snapshot = mcts_after_one_tell().snapshot()
    told = {"candidate": "a", "status": "correct", "reward": 0.0}
    snapshot["expansions"][0]["slots"][1] = told
    restored = restore_search(
        snapshot | {"schema": 1}, config=MctsConfig(), rule=RewardRule(), seed=5
    )
    view = restored.node(2)
    assert (view.candidate, view.reward, view.strategy, view.progress) == ("a", 0.0, "", UNKNOWN)


def test_a_restored_search_keeps_the_rewards_it_was_told_under_another_rule():
    snapshot = mcts_after_one_tell().snapshot()
    snapshot["expansions"][0]["slots"][1]["reward"] = -7.0
    restored = restore_search(snapshot, config=MctsConfig(), rule=RewardRule(floor=-1.0), seed=5)
    assert restored.node(2).reward == -7.0


@pytest.mark.parametrize(("field", "value"), [("schema", 3), ("kind", "best_of_n"), ("seed", 6)])
def test_a_snapshot_of_something_else_is_refused_by_name(field, value):
    snapshot = mcts_after_one_tell().snapshot() | {field: value}
    with pytest.raises(ValueError, match=rf"{field} must be"):
        restore_search(snapshot, config=MctsConfig(), rule=RewardRule(), seed=5)


def test_a_snapshot_is_not_restored_into_another_policy():
    with pytest.raises(ValueError, match="kind must be 'best_of_n', found 'mcts'"):
        restore_search(
            mcts_after_one_tell().snapshot(), config=BestOfNConfig(), rule=RewardRule(), seed=5
        )
